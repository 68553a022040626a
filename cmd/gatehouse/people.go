package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

func newApprover(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "approver", Short: "The people who may answer",
		Example: `  gatehouse approver add ann > ann.key          # the first needs no credential, once
  gatehouse approver add bob --credential-file ann.key
  gatehouse approver link --credential-file ann.key    # sign in to the console`,
	})
	add := &cobra.Command{
		Use: "add NAME", Short: "Enrol an approver and print the credential, once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.enrol(cmd, "/v1/approvers", args[0]) },
	}
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List approvers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.ApproverList{}
			return a.show(cmd, "/v1/approvers", got, func() error {
				var rows [][]string
				for _, p := range got.Approvers {
					rows = append(rows, []string{p.Name, stamp(p.Added), p.By, yes(p.TOTP)})
				}
				return table(out(cmd), "name,added,by,second factor", rows)
			})
		},
	})
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove an approver", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/approvers/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	link := &cobra.Command{
		Use: "link", Short: "Print a sign-in link for the console, good once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.LinkResponse{}
			if err := a.do(cmd, "POST", "/v1/link", nil, got); err != nil {
				return err
			}
			_, err := fmt.Fprintln(out(cmd), got.URL)
			return err
		},
	}
	cmd.AddCommand(add, list, remove, link, newTOTP(a))
	return cmd
}

func newTOTP(a *app) *cobra.Command {
	var code string
	cmd := &cobra.Command{
		Use: "totp", Short: "Enrol a second factor, then confirm it with --code", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if code != "" {
				return a.do(cmd, "POST", "/v1/totp/confirm", &api.CodeRequest{Code: code}, nil)
			}
			got := &api.TOTPResponse{}
			if err := a.do(cmd, "POST", "/v1/totp", nil, got); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out(cmd), "Add this to an authenticator, then run again with --code:\n%s\nsecret: %s\n", got.URI, got.Secret)
			return err
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "first code of the authenticator")
	return cmd
}

func newAgent(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "agent", Short: "The agents that may submit calls",
		Example: `  gatehouse agent add ci --credential-file ann.key > ci.token`,
	})
	add := &cobra.Command{
		Use: "add NAME", Short: "Enrol an agent and print its token, once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.enrol(cmd, "/v1/agents", args[0]) },
	}
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.AgentList{}
			return a.show(cmd, "/v1/agents", got, func() error {
				var rows [][]string
				for _, g := range got.Agents {
					rows = append(rows, []string{g.Name, stamp(g.Added), g.By})
				}
				return table(out(cmd), "name,added,by", rows)
			})
		},
	})
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove an agent; its token is refused from then on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/agents/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	cmd.AddCommand(add, list, remove)
	return cmd
}

// enrol enrols someone and prints the secret alone, so that it can go into a
// file.
func (a *app) enrol(cmd *cobra.Command, path, name string) error {
	got := &api.SecretResponse{}
	if err := a.do(cmd, "POST", path, &api.NameRequest{Name: name}, got); err != nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "This is shown once; keep it in a file that only you can read.")
	_, err := fmt.Fprintln(out(cmd), got.Secret)
	return err
}

// do makes one request to the daemon.
func (a *app) do(cmd *cobra.Command, method, path string, in, result any) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	return c.Do(cmd.Context(), method, path, in, result)
}

// show reads something and prints it, as JSON or for people.
func (a *app) show(cmd *cobra.Command, path string, got any, print func() error) error {
	if err := a.do(cmd, "GET", path, nil, got); err != nil {
		return err
	}
	if a.json {
		return printJSON(out(cmd), got)
	}
	return print()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
