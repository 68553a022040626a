package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

func newUp(a *app) *cobra.Command {
	var listen, dsn, node, policyFile, isolation, issuer string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the gate: console, API, MCP endpoint and hook socket",
		Long: `Starts the gate and serves until Ctrl-C. Everything it keeps lies in one directory.
The first time, on a terminal, it shows a link with which you become the first approver.`,
		Example: `  gatehouse up
  gatehouse up --data ./gate --listen 127.0.0.1:9000
  gatehouse up --policy team.toml --isolation container
  gatehouse up --database postgres://gate@db/gatehouse --node a`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := place.Find(a.home)
			if err != nil {
				return err
			}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			tty := terminal()
			if tty != nil {
				defer tty.Close()
			}
			return daemon.Run(cmd.Context(), daemon.Options{
				Place: p, Listen: listen, Database: dsn, Node: node, PolicyFile: policyFile, Isolation: isolation, Issuer: issuer,
				Version: buildVersion(), Log: log, Terminal: writer(tty),
				Ready: func(url string) {
					fmt.Fprintf(out(cmd), "Gatehouse is up.\n  console  %s\n  API      %s/v1 (openapi.json describes it)\n  socket   %s\n  data     %s\n", url, url, p.Socket(), p.Home)
				},
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7878", "address of the console and the API")
	f.StringVar(&dsn, "database", os.Getenv("GATEHOUSE_DATABASE"), "postgres:// URL to use instead of the embedded SQLite")
	f.StringVar(&node, "node", "", "name of this node among those that share a database")
	f.StringVar(&policyFile, "policy", "", "policy file (default policy.toml in the data directory)")
	f.StringVar(&isolation, "isolation", "", "what the agents run in, as you state it: none, container or vm")
	f.StringVar(&issuer, "issuer", "", "OpenID Connect issuer whose tokens for /mcp are taken, besides the gate's own")
	f.BoolVar(&verbose, "verbose", false, "log more")
	return cmd
}

// terminal opens the controlling terminal, where only the person who started
// the gate reads. A pipe, a log file or an agent's tool gets nothing.
func terminal() *os.File {
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return tty
}

// writer keeps a missing terminal from becoming an interface that is not nil.
func writer(f *os.File) io.Writer {
	if f == nil {
		return nil
	}
	return f
}
