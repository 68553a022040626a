package main

import (
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// challenges reads what waits for a code. Only approvers get here.
func challenges(cmd *cobra.Command, c *client.Client) ([]admin.Challenge, error) {
	got := &api.ChallengeList{}
	err := c.Do(cmd.Context(), "GET", "/v1/challenges", nil, got)
	return got.Challenges, err
}

// printChallenge shows a challenge with its code. What an agent wrote reaches
// the terminal as visible text only.
func printChallenge(w io.Writer, c *admin.Challenge) {
	fmt.Fprintf(w, "%-12s %s (%s, %s)\n", "challenge", c.ID, c.Kind, c.State)
	fmt.Fprintf(w, "%-12s %s\n", "it", match.Visible(c.Words))
	fmt.Fprintf(w, "%-12s %s   until %s\n", "code", paint(w, yellow, c.Code), stamp(c.Expires))
}

// challengeTable lists challenges below the requests.
func challengeTable(w io.Writer, list []admin.Challenge) error {
	if len(list) == 0 {
		return nil
	}
	var rows [][]string
	for _, c := range list {
		words := c.Words
		if len(words) > 80 {
			words = words[:79] + "…"
		}
		rows = append(rows, []string{c.ID, c.Kind, c.Agent, c.Code, words, ago(c.Issued, time.Now())})
	}
	return table(w, "challenge,kind,agent,code,what,issued", rows)
}

func newRelease(a *app) *cobra.Command {
	var in api.ReleaseRequest
	cmd := &cobra.Command{
		Use: "release CHALLENGE", Short: "Do what a challenge asks for: let an execution go on, release a lock or a block", Args: cobra.ExactArgs(1),
		Example: `  gatehouse approvals release ch_2f…                                       # a paused execution goes on
  gatehouse approvals release ch_2f… --challenge K7M2PX --code 123456      # the element that freezes a session
  gatehouse approvals release ch_2f… --challenge K7M2PX --code 123456 --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.do(cmd, "POST", "/v1/challenges/"+url.PathEscape(args[0])+"/release", &in, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out(cmd), "%s %s\n", paint(out(cmd), green, "Released"), args[0])
			return err
		},
	}
	releaseFlags(cmd, &in)
	cmd.Flags().BoolVar(&in.All, "all", false, "take every active element away, not only what locks")
	return cmd
}

func newRefuse(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "refuse CHALLENGE", Short: "Turn a challenge down; its code is void", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.do(cmd, "POST", "/v1/challenges/"+url.PathEscape(args[0])+"/refuse", nil, nil)
		},
	}
}
