package main

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
)

func newSessions(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{Use: "sessions", Short: "The agents' sessions"})
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List sessions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.SessionList{}
			return a.show(cmd, "/v1/sessions", got, func() error {
				var rows [][]string
				for _, s := range got.Sessions {
					rows = append(rows, []string{s.ID, s.Agent, s.Surface, s.Workspace, ago(s.LastSeen, time.Now()), s.Ended})
				}
				return table(out(cmd), "session,agent,surface,workspace,last seen,ended", rows)
			})
		},
	})
	end := &cobra.Command{
		Use: "end SESSION", Short: "End a session; its grants end with it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "POST", "/v1/sessions/"+url.PathEscape(args[0])+"/end", nil, nil)
		},
	}
	cmd.AddCommand(list, end)
	return cmd
}

func newGrants(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{Use: "grants", Short: "What people have approved and still holds"})
	list := a.withJSON(&cobra.Command{
		Use: "list", Short: "List grants", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &api.GrantList{}
			return a.show(cmd, "/v1/grants", got, func() error {
				var rows [][]string
				for _, g := range got.Grants {
					rows = append(rows, []string{g.ID, g.Principal.String(), g.Words, g.By, strconv.Itoa(g.Uses), ago(g.Expires, time.Now())})
				}
				return table(out(cmd), "grant,agent,scope,by,uses,expires", rows)
			})
		},
	})
	revoke := &cobra.Command{
		Use: "revoke GRANT", Short: "Take a grant back; what it covered asks again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/grants/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	clear := &cobra.Command{
		Use: "clear SESSION", Short: "Take back every grant of a session", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "DELETE", "/v1/sessions/"+url.PathEscape(args[0])+"/grants", nil, nil)
		},
	}
	cmd.AddCommand(list, revoke, clear)
	return cmd
}

func newKill(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "kill", Short: "The kill switch: while it is on, every call is denied",
		Example: `  gatehouse kill on --reason "looking into it" --credential-file me.key
  gatehouse kill off --credential-file me.key`,
	})
	var reason string
	throw := func(use, short string, on bool) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := a.do(cmd, "POST", "/v1/kill", &api.KillRequest{On: on, Reason: reason}, nil); err != nil {
					return err
				}
				_, err := fmt.Fprintln(out(cmd), "The kill switch is "+use+".")
				return err
			},
		}
	}
	on := throw("on", "Deny every call from now on", true)
	on.Flags().StringVar(&reason, "reason", "switched on by hand", "why, for the log and the agents")
	status := a.withJSON(&cobra.Command{
		Use: "status", Short: "Tell whether it is on", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &admin.Kill{}
			return a.show(cmd, "/v1/kill", got, func() error {
				if !got.On {
					_, err := fmt.Fprintln(out(cmd), "off")
					return err
				}
				_, err := fmt.Fprintf(out(cmd), "on since %s, by %s: %s\n", stamp(got.At), got.By, got.Reason)
				return err
			})
		},
	})
	cmd.AddCommand(on, throw("off", "Let calls be decided again", false), status)
	return cmd
}
