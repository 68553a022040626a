package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

func newApprovals(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use:     "approvals",
		Aliases: []string{"approval"},
		Short:   "See and answer what waits for a person",
		Example: `  gatehouse approvals list --credential-file me.key
  gatehouse approvals watch --credential-file me.key
  gatehouse approvals approve r_2f… --credential-file me.key
  gatehouse approvals deny r_2f… --reason "use the staging database" --credential-file me.key`,
	})
	cmd.AddCommand(newApprovalsList(a), newApprovalsShow(a), newApprovalsWatch(a), newApprove(a), newDeny(a), newRespond(a), newEdit(a), newRelease(a), newRefuse(a))
	return cmd
}

func newApprovalsList(a *app) *cobra.Command {
	var all bool
	cmd := a.withJSON(&cobra.Command{
		Use: "list", Short: "List requests that wait (or all)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			list, err := requests(cmd, c, all)
			if err != nil {
				return err
			}
			codes, err := challenges(cmd, c)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), struct {
					*api.ApprovalList
					Challenges []admin.Challenge `json:"challenges,omitzero"`
				}{list, codes})
			}
			if len(list.Requests)+len(codes) == 0 {
				_, err = fmt.Fprintln(out(cmd), "Nothing waits.")
				return err
			}
			if len(list.Requests) == 0 {
				return challengeTable(out(cmd), codes)
			}
			var rows [][]string
			for _, r := range list.Requests {
				rows = append(rows, []string{r.ID, r.State, r.Call.Principal.Agent, r.Call.Operation, oneLine(&r), ago(r.Filed, time.Now())})
			}
			if err := table(out(cmd), "request,state,agent,operation,what,filed", rows); err != nil {
				return err
			}
			return challengeTable(out(cmd), codes)
		},
	})
	cmd.Flags().BoolVar(&all, "all", false, "also those that were answered")
	return cmd
}

func requests(cmd *cobra.Command, c *client.Client, all bool) (*api.ApprovalList, error) {
	q := url.Values{"state": {"pending"}}
	if all {
		q.Del("state")
	}
	list := &api.ApprovalList{}
	return list, c.Do(cmd.Context(), "GET", "/v1/approvals?"+q.Encode(), nil, list)
}

// oneLine is what a request is about, in one line.
func oneLine(r *admin.Request) string {
	text := ""
	if r.Facts != nil {
		text = r.Facts.Words
	}
	if text == "" && r.Call != nil {
		text = string(r.Call.Args)
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:79], "") + "…"
	}
	return text
}

func newApprovalsShow(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "show REQUEST", Short: "Show a request, every byte of it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			r := &admin.Request{}
			if err := c.Do(cmd.Context(), "GET", "/v1/approvals/"+url.PathEscape(args[0]), nil, r); err != nil {
				return err
			}
			if a.json {
				return printJSON(out(cmd), r)
			}
			if err := printRequest(out(cmd), r); err != nil {
				return err
			}
			codes, err := challenges(cmd, c)
			for i := range codes {
				if codes[i].Subject == r.ID {
					printChallenge(out(cmd), &codes[i])
				}
			}
			return err
		},
	})
}

// printRequest shows a whole request. Nothing is masked or shortened, and
// nothing an agent wrote reaches the terminal as anything but visible text.
func printRequest(w io.Writer, r *admin.Request) error {
	field := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-12s %s\n", name, match.Visible(text))
		}
	}
	field("request", r.ID)
	field("state", r.State)
	field("agent", r.Call.Principal.String())
	field("surface", r.Call.Surface)
	field("operation", strings.TrimSpace(r.Call.Operation+" "+r.Call.ElementType))
	field("directory", r.Call.Dir)
	field("note", r.Call.Note)
	field("expires", stamp(r.Expires))
	if f := r.Facts; f != nil {
		field("does", f.Words)
		for _, n := range f.Needs {
			field("needs", n.String())
		}
		if f.Irreversible {
			field("undo", "it cannot be undone")
		}
		for _, u := range f.Uncommitted {
			field("uncommitted", u)
		}
		for _, d := range f.Destroys {
			field("destroys", d)
		}
		for _, n := range f.NotKept {
			field("not kept", n)
		}
	}
	if len(r.Call.Args) > 0 {
		args := jsontext.Value(append([]byte(nil), r.Call.Args...))
		if err := args.Indent(jsontext.WithIndent("  ")); err == nil {
			fmt.Fprintf(w, "arguments\n%s\n", match.VisibleLines(string(args)))
		}
	}
	if r.Decision != nil {
		field("held by", r.Decision.Why())
		for v := range r.Decision.Votes() {
			fmt.Fprintf(w, "  %-10s %-18s %s\n", v.Stage, v.Level, match.Visible(v.Source+" · "+v.Rule+": "+v.Reason))
		}
	}
	for i, o := range r.Offers {
		suggested := ""
		if o.Suggested {
			suggested = " (what the active elements ask for)"
		}
		fmt.Fprintf(w, "offer %d      approve %s%s\n", i, match.Visible(o.Words), suggested)
		if i < len(r.History) {
			printHistory(w, r.History[i])
		}
	}
	field("digest", r.Digest.String())
	return nil
}

func newApprovalsWatch(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Show requests as they come, until Ctrl-C", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			seen := map[string]bool{}
			fmt.Fprintln(out(cmd), paint(out(cmd), dim, "Waiting for requests; Ctrl-C ends."))
			return c.Watch(cmd.Context(), func() error {
				list, err := requests(cmd, c, false)
				if err != nil {
					return err
				}
				for i := range list.Requests {
					r := &list.Requests[i]
					if seen[r.ID] {
						continue
					}
					seen[r.ID] = true
					if err := printRequest(out(cmd), r); err != nil {
						return err
					}
					fmt.Fprintf(out(cmd), "\n%s\n\n", paint(out(cmd), yellow, "gatehouse approvals approve "+r.ID+"   or   deny "+r.ID))
				}
				codes, err := challenges(cmd, c)
				if err != nil {
					return err
				}
				for i := range codes {
					if code := &codes[i]; !seen[code.ID] {
						seen[code.ID] = true
						printChallenge(out(cmd), code)
						fmt.Fprintf(out(cmd), "\n%s\n\n", paint(out(cmd), yellow, "tell the code to "+match.Visible(code.Agent)+", or   gatehouse approvals release "+code.ID+"   or   refuse "+code.ID))
					}
				}
				return nil
			})
		},
	}
}

// answer looks at a request and answers what it saw.
func (a *app) answer(cmd *cobra.Command, id, verb string, in func(*admin.Request) any, result any) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	r := &admin.Request{}
	path := "/v1/approvals/" + url.PathEscape(id)
	if err := c.Do(cmd.Context(), "GET", path, nil, r); err != nil {
		return err
	}
	return c.Do(cmd.Context(), "POST", path+"/"+verb, in(r), result)
}

func newApprove(a *app) *cobra.Command {
	var offer int
	var code string
	var never bool
	cmd := &cobra.Command{
		Use: "approve REQUEST", Short: "Approve a request, once or as an offer says", Args: cobra.ExactArgs(1),
		Example: `  gatehouse approvals approve r_2f… --credential-file me.key
  gatehouse approvals approve r_2f… --offer 1        # for the session, in the scope of offer 1
  gatehouse approvals approve r_2f… --code 123456    # a pinned call needs a one-time code
  gatehouse approvals approve r_2f… --never-ask-again  # and propose a rule; "policy accept" puts it in force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var words string
			verb, proposal := "approve", any(nil)
			rule := &admin.Proposal{}
			if never {
				verb, proposal = "never-ask-again", rule
			}
			err := a.answer(cmd, args[0], verb, func(r *admin.Request) any {
				words = "offer " + strconv.Itoa(offer)
				if offer >= 0 && offer < len(r.Offers) {
					words = r.Offers[offer].Words
				}
				return &api.ApproveRequest{Digest: r.Digest, Offer: offer, Code: code}
			}, proposal)
			if err != nil {
				return err
			}
			if never {
				fmt.Fprintf(out(cmd), "Written to %s, and waits for `gatehouse policy accept`:\n%s\n", match.Visible(rule.Path), match.VisibleLines(rule.Text))
			}
			_, err = fmt.Fprintf(out(cmd), "%s %s: %s\n", paint(out(cmd), green, "Approved"), args[0], match.Visible(words))
			return err
		},
	}
	cmd.Flags().IntVar(&offer, "offer", 0, "number of the offer to take; 0 is this call, once")
	cmd.Flags().StringVar(&code, "code", "", "one-time code, for pinned calls")
	cmd.Flags().BoolVar(&never, "never-ask-again", false, "also propose a narrow rule that lets the same through; it waits to be accepted")
	return cmd
}

func newDeny(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "deny REQUEST", Short: "Deny a request", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.answer(cmd, args[0], "deny", func(r *admin.Request) any { return &api.ReplyRequest{Digest: r.Digest, Text: reason} }, nil)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out(cmd), "%s %s\n", paint(out(cmd), red, "Denied"), args[0])
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "words for the agent")
	return cmd
}

func newRespond(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "respond REQUEST WORDS", Short: "Answer in words; the call does not run", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answer(cmd, args[0], "respond", func(r *admin.Request) any { return &api.ReplyRequest{Digest: r.Digest, Text: args[1]} }, nil)
		},
	}
}

func newEdit(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "edit REQUEST ARGS", Short: "Put other arguments in place; that is a request of its own", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !jsontext.Value(args[1]).IsValid() {
				return usageError{errors.New("the arguments are not JSON, or name a member twice")}
			}
			result := &api.EditResponse{}
			err := a.answer(cmd, args[0], "edit", func(r *admin.Request) any { return &api.EditRequest{Digest: r.Digest, Args: []byte(args[1])} }, result)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out(cmd), "The edited call is request %s; it waits for an answer of its own.\n", result.Request)
			return err
		},
	}
}

// printHistory shows what an offer would have covered before.
func printHistory(w io.Writer, past []admin.PastCall) {
	for i, p := range past {
		if i == 3 {
			fmt.Fprintf(w, "             and %d more\n", len(past)-i)
			return
		}
		fmt.Fprintf(w, "             would have covered %s %s\n", p.Call, match.Visible(p.Words))
	}
}
