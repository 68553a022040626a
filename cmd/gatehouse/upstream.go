package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

func newUpstream(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "upstream", Short: "The MCP servers behind the gate",
		Long: `Agents reach these servers through the gate, at /mcp of the daemon or with
` + "`gatehouse mcp`" + `. Each tool is pinned as it was first seen; what changes later is
hidden until a person accepts it.`,
		Example: `  gatehouse upstream add files --credential-file me.key -- npx -y @modelcontextprotocol/server-filesystem ./docs
  gatehouse upstream add tracker --url https://tracker.example.com/mcp --credential-file me.key
  gatehouse upstream diff files --credential-file me.key
  gatehouse upstream accept files --credential-file me.key`,
	})
	cmd.AddCommand(newUpstreamAdd(a), newUpstreamList(a), newUpstreamShow(a), newUpstreamDiff(a), newUpstreamAccept(a), newUpstreamCredential(a), &cobra.Command{
		Use: "remove NAME", Short: "Remove a server, its pins and its credentials", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/upstreams/"+url.PathEscape(args[0]), nil, nil)
		},
	})
	return cmd
}

func newUpstreamAdd(a *app) *cobra.Command {
	var spec upstream.Spec
	cmd := &cobra.Command{
		Use: "add NAME [options] [-- COMMAND [ARGUMENTS]]", Short: "Add a server: a command that the gate starts, or a URL", Args: cobra.MinimumNArgs(1),
		Example: `  gatehouse upstream add files --confined --read ./docs -- npx -y @modelcontextprotocol/server-filesystem ./docs
  gatehouse upstream add github --url https://api.example.com/mcp`,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec.Command = args[1:]
			for _, dir := range []*string{&spec.Dir, &spec.Workspace} {
				if err := realDir(dir); err != nil {
					return err
				}
			}
			return a.do(cmd, "POST", "/v1/upstreams", &api.UpstreamRequest{Name: args[0], Spec: spec}, nil)
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.URL, "url", "", "address of a server that speaks HTTP")
	f.BoolVar(&spec.SSE, "sse", false, "the server speaks the older HTTP with server-sent events")
	f.StringVar(&spec.Dir, "cwd", "", "working directory of the command, which relative paths and globs are bound to")
	f.StringVar(&spec.Workspace, "workspace", "", "the same for a server at a URL on this machine")
	f.StringSliceVar(&spec.Env, "env", nil, "variable of the command, NAME=value; no place for a secret")
	f.StringVar(&spec.CredentialEnv, "credential-env", "", "variable in which the command gets the agent's credential")
	f.StringVar(&spec.CredentialHeader, "credential-header", "", "header with the agent's credential (default: Authorization, as a bearer token)")
	f.BoolVar(&spec.Confined, "confined", false, "run the command in the sandbox, with no more than --read, --write and --net name")
	f.StringSliceVar(&spec.Read, "read", nil, "path it may read (default: its working directory)")
	f.StringSliceVar(&spec.Write, "write", nil, "path it may write")
	f.StringSliceVar(&spec.Net, "net", nil, "host or host:port it may reach")
	f.StringVar(&spec.Output, "output", "", "what happens to suspicious output: flag, fence or hold; the policy can be stricter")
	return cmd
}

// realDir makes a directory that was named the one that it leads to now: the
// gate takes what is put in its place later for another.
func realDir(dir *string) error {
	if *dir == "" {
		return nil
	}
	abs, err := filepath.Abs(*dir)
	if err == nil {
		*dir, err = filepath.EvalSymlinks(abs)
	}
	return err
}

func newUpstreamList(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "list", Short: "List the servers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.UpstreamList{}
			return a.show(cmd, "/v1/upstreams", got, func() error {
				var rows [][]string
				for _, u := range got.Upstreams {
					rows = append(rows, []string{u.Name, reached(&u.Spec), stamp(u.Added), u.AddedBy, strconv.Itoa(u.Waiting)})
				}
				return table(out(cmd), "name,reached by,added,by,waiting", rows)
			})
		},
	})
}

func reached(s *upstream.Spec) string {
	if s.URL != "" {
		return s.URL
	}
	if s.Confined {
		return "confined: " + strings.Join(s.Command, " ")
	}
	return strings.Join(s.Command, " ")
}

func newUpstreamShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show NAME", Short: "Show what was pinned of a server", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got := &api.PinList{}
			return a.show(cmd, "/v1/upstreams/"+url.PathEscape(args[0])+"/pins", got, func() error {
				var rows [][]string
				for _, p := range got.Pins {
					if p.Kind == upstream.Surveyed {
						continue
					}
					rows = append(rows, []string{p.Kind, p.Name, p.State, stamp(p.Seen), p.By, p.Reason})
				}
				return table(out(cmd), "kind,name,state,seen,by,reason", rows)
			})
		},
	})
}

func newUpstreamDiff(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "diff [NAME]", Short: "Show what changed since it was pinned and waits to be accepted", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := a.differences(cmd, args)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), got)
			}
			return printDifferences(out(cmd), got)
		},
	})
}

func newUpstreamAccept(a *app) *cobra.Command {
	var tool string
	cmd := &cobra.Command{
		Use: "accept NAME", Short: "Accept what waits of a server; prints it first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := a.differences(cmd, args)
			if err != nil {
				return err
			}
			if err := printDifferences(out(cmd), got); err != nil {
				return err
			}
			err = a.do(cmd, "POST", "/v1/upstreams/accept?upstream="+url.QueryEscape(args[0]), &api.AcceptUpstreamRequest{Tool: tool, Digest: got.Digest}, nil)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(out(cmd), "Accepted.")
			return err
		},
	}
	cmd.Flags().StringVar(&tool, "tool", "", "accept one tool only")
	return cmd
}

func (a *app) differences(cmd *cobra.Command, args []string) (*admin.Differences, error) {
	path := "/v1/upstream-differences"
	if len(args) > 0 {
		path += "?upstream=" + url.QueryEscape(args[0])
	}
	got := &admin.Differences{}
	return got, a.do(cmd, "GET", path, nil, got)
}

// printDifferences shows definitions line by line, old against new.
func printDifferences(w io.Writer, d *admin.Differences) error {
	if len(d.Waiting) == 0 {
		_, err := fmt.Fprintln(w, "Nothing waits.")
		return err
	}
	for _, p := range d.Waiting {
		if _, err := fmt.Fprintf(w, "%s %s %s: %s\n", match.Visible(p.Upstream), p.Kind, match.Visible(p.Name), match.Visible(p.Reason)); err != nil {
			return err
		}
		old, now := lines(p.Was), lines(p.Text)
		for _, l := range old {
			if !contains(now, l) {
				fmt.Fprintln(w, paint(w, red, "- "+match.Visible(l)))
			}
		}
		for _, l := range now {
			if !contains(old, l) {
				fmt.Fprintln(w, paint(w, green, "+ "+match.Visible(l)))
			}
		}
	}
	return nil
}

// lines writes a definition with one member per line.
func lines(text string) []string {
	v := jsontext.Value(text)
	if text == "" {
		return nil
	}
	if v.Indent() != nil {
		return strings.Split(text, "\n") // instructions are plain text
	}
	return strings.Split(string(v), "\n")
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if strings.TrimSuffix(l, ",") == strings.TrimSuffix(s, ",") {
			return true
		}
	}
	return false
}

func newUpstreamCredential(a *app) *cobra.Command {
	var agent, file string
	var clear bool
	cmd := &cobra.Command{
		Use: "credential NAME", Short: "Keep, or forget, the credential with which the gate goes to a server for an agent", Args: cobra.ExactArgs(1),
		Long: `The credential is read from a file, sealed, and used for requests of that agent
only. It is never shown again, to nobody.`,
		Example: `  gatehouse upstream credential github --agent coder --secret-file token.txt --credential-file me.key
  gatehouse upstream credential github --agent coder --clear --credential-file me.key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "/v1/upstreams/" + url.PathEscape(args[0]) + "/credential"
			if clear {
				return a.do(cmd, "DELETE", path+"?agent="+url.QueryEscape(agent), nil, nil)
			}
			secret, err := client.Secret(file)
			if err != nil {
				return usageError{err}
			}
			if secret == "" {
				return usageError{errors.New("--secret-file names the file with the credential")}
			}
			return a.do(cmd, "POST", path, &api.UpstreamCredentialRequest{Agent: agent, Secret: secret}, nil)
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "whose it is (default: all agents that have none of their own)")
	f.StringVar(&file, "secret-file", "", "file with the credential (\"-\" reads standard input)")
	f.BoolVar(&clear, "clear", false, "forget it")
	return cmd
}
