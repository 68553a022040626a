package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func newUp(a *app) *cobra.Command {
	var listen, dsn, node, policyFile, isolation, manifestFile, socket, issuer string
	var verbose, again bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the gate: console, API, MCP endpoint and hook socket",
		Long: `Starts the gate and serves until Ctrl-C. Everything it keeps lies in one directory.
The first time, on a terminal, it shows a link with which you become the first approver.`,
		Example: `  gatehouse up
  gatehouse up --data ./gate --listen 127.0.0.1:9000
  gatehouse up --policy team.toml --isolation container
  gatehouse up --manifest permissions.json
  gatehouse up --database postgres://gate@db/gatehouse --node a`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := place.Find(a.home)
			if err != nil {
				return err
			}
			if isolation == "" && manifestFile != "" {
				m, err := readManifest(manifestFile)
				if err != nil {
					return err
				}
				isolation = m.Isolation
			}
			last := lastUp{Listen: listen, Database: dsn, Node: node, Policy: policyFile, Isolation: isolation, Issuer: issuer}
			if again {
				if err := last.read(p); err != nil {
					return err
				}
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
				Place: p, Socket: socket, Listen: last.Listen, Database: last.Database, Node: last.Node, PolicyFile: last.Policy, Isolation: last.Isolation, Issuer: last.Issuer,
				Version: buildVersion(), Log: log, Terminal: writer(tty), Launcher: launcher(p.Home),
				Ready: func(url string) {
					if err := last.write(p); err != nil {
						log.Warn("how the gate was started could not be noted; `up --again` will not know", "error", err)
					}
					fmt.Fprintf(out(cmd), "Gatehouse is up.\n  console  %s\n  API      %s/v1 (openapi.json describes it)\n  socket   %s\n  data     %s\n", url, url, cmp.Or(socket, p.Socket()), p.Home)
				},
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7878", "address of the console and the API")
	f.StringVar(&dsn, "database", os.Getenv("GATEHOUSE_DATABASE"), "postgres:// URL to use instead of the embedded SQLite")
	f.StringVar(&socket, "socket", "", "unix socket for everyone on this machine (default: one in the data directory, for its owner alone)")
	f.StringVar(&node, "node", "", "name of this node among those that share a database")
	f.StringVar(&policyFile, "policy", "", "policy file (default policy.toml in the data directory)")
	f.StringVar(&isolation, "isolation", "", "what the agents run in, as you state it: none, container or vm")
	f.StringVar(&manifestFile, "manifest", "", "permission manifest that you accepted; what it says about isolation counts where --isolation says nothing")
	f.StringVar(&issuer, "issuer", "", "OpenID Connect issuer whose tokens for /mcp are taken, besides the gate's own")
	f.BoolVar(&verbose, "verbose", false, "log more")
	f.BoolVar(&again, "again", false, "start it as it was started last; what a hook does when the gate is away")
	return cmd
}

// launcher is this program as it reaches this gate, if something on this
// machine can confine what it runs. That is tried once, when the first agent
// could use it.
func launcher(home string) func() []string {
	return sync.OnceValue(func() []string {
		self, err := os.Executable()
		if err != nil || !sandbox.Supported().Any(sandbox.WriteRoots|sandbox.ReadRoots|sandbox.NoNetwork) {
			return nil
		}
		return []string{self, "--data", home}
	})
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

// lastUp is how the gate was started last, for whoever starts it again.
type lastUp struct {
	Listen    string `json:"listen"`
	Database  string `json:"database,omitzero"`
	Node      string `json:"node,omitzero"`
	Policy    string `json:"policy,omitzero"`
	Isolation string `json:"isolation,omitzero"`
	Issuer    string `json:"issuer,omitzero"`
}

// read takes over what was noted. Where nothing was, the flags stand.
func (l *lastUp) read(p place.Place) error {
	text, err := os.ReadFile(p.LastUp())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, l)
}

// write notes how the gate was started, with absolute paths: the next start is
// made from elsewhere.
func (l *lastUp) write(p place.Place) (err error) {
	if l.Policy != "" {
		if l.Policy, err = filepath.Abs(l.Policy); err != nil {
			return err
		}
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(p.LastUp(), text, 0o600)
}
