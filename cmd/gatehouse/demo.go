package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
)

// demoCalls is what the scripted agent wants. It runs nothing: whatever is
// allowed it only pretends to have done.
var demoCalls = []struct{ op, args, note string }{
	{"list_elements", `{"element_type":"skill"}`, "look around"},
	{"introspect", `{}`, "ask what there is"},
	{"Read", `{"file_path":"README.md"}`, "read a file"},
	{"TodoWrite", `{"todos":[{"content":"fix the build"}]}`, "make a plan"},
	{"create_element", `{"element_type":"skill","name":"release-notes","description":"writes release notes"}`, "add a skill"},
	{"Write", `{"file_path":"notes/today.md","content":"hello"}`, "write a file in the workspace"},
	{"WebFetch", `{"url":"https://example.com/changelog"}`, "fetch a page"},
	{"Bash", `{"command":"make test"}`, "run the project's tests"},
	{"delete_element", `{"element_type":"skill","name":"release-notes"}`, "delete it again: pinned, asked every time"},
	{"read_elments", `{}`, "a name that does not exist"},
	{"list_elements", `{"endpoint":"wrong"}`, "the right name on the wrong endpoint"},
	{"Read", "", "the gate's own files"},
}

func newDemo(a *app) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Let a scripted agent make a dozen calls through the running gate",
		Long: `A scripted agent makes a dozen calls through the running gate, so that you see allow,
ask and deny within a minute. Nothing of what its tools would do is really done: it is
only reported as done. What you approve of the gate's own operations is performed.
Open the console meanwhile and answer what waits there.`,
		Example: `  gatehouse up                # in one terminal
  gatehouse demo              # in another: what needs a person stays pending
  gatehouse demo --wait 30s   # wait for your answer to each question`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd, wait) },
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait for a person at each question")
	return cmd
}

func (a *app) demo(cmd *cobra.Command, wait time.Duration) error {
	c, err := a.asAgent()
	if err != nil {
		return err
	}
	session := &api.SessionResponse{}
	if err := c.Do(cmd.Context(), "POST", "/v1/sessions", &api.SessionRequest{}, session); err != nil {
		return err
	}
	counts := map[gate.Verdict]int{}
	for i, d := range demoCalls {
		in := &api.CallRequest{Operation: d.op, Args: jsontext.Value(d.args), Note: d.note, Session: session.Session, Dir: "/tmp", WaitMS: int(wait.Milliseconds())}
		a.arrange(i, in)
		got := &api.CallResponse{}
		if err := c.Do(cmd.Context(), "POST", "/v1/calls", in, got); err != nil {
			return err
		}
		counts[got.Verdict]++
		printDemo(cmd, d.op, d.note, got)
		if got.Verdict != gate.Allowed || got.Outcome != "" {
			continue
		}
		done := &api.OutcomeRequest{Outcome: gate.Succeeded, Detail: "the demo only pretends", Session: session.Session}
		if err := c.Do(cmd.Context(), "POST", "/v1/calls/"+got.CallID+"/outcome", done, nil); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out(cmd), "\n%d allowed, %d waiting for a person, %d denied. Answer what waits on the console or with `gatehouse approvals`.\n",
		counts[gate.Allowed], counts[gate.Pending], counts[gate.Denied])
	return err
}

// arrange fills in what depends on this machine.
func (a *app) arrange(i int, in *api.CallRequest) {
	switch i {
	case 9:
		in.Kind = call.Native.String()
	case 10:
		in.Args, in.Endpoint = nil, call.Create
	case 11:
		in.Args = jsontext.Value(`{"file_path":` + quoteJSON(a.dataPath("keys")) + `}`)
	}
}

func printDemo(cmd *cobra.Command, op, note string, got *api.CallResponse) {
	w := out(cmd)
	colour := map[gate.Verdict]string{gate.Allowed: green, gate.Pending: yellow, gate.Denied: red}[got.Verdict]
	why := ""
	for _, v := range got.Votes {
		if v.Level == got.Level && v.Level != call.AutoApprove {
			why = v.Reason
		}
	}
	fmt.Fprintf(w, "%s  %-16s %s\n", paint(w, colour, fmt.Sprintf("%-8s", got.Verdict)), op, paint(w, dim, note))
	if why != "" {
		fmt.Fprintf(w, "%s\n", paint(w, dim, "          "+strings.TrimSpace(match.Visible(why))))
	}
}
