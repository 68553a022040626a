package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

func newCheck(a *app) *cobra.Command {
	in := &api.CallRequest{}
	var args, policyFile, endpoint, plan string
	var lines, dry, shell bool
	sh := &shellCheck{app: a}
	cmd := a.withJSON(&cobra.Command{
		Use:   "check {--op NAME [--args JSON] | --shell COMMAND | --plan FILE}",
		Short: "Show how a call would be decided, with every vote; nothing runs",
		Long: `Shows how a call would be decided and why. With a running gate its policy and state
count; without one it is a dry run on the policy files alone.

Exit codes: 0 it would be allowed, 10 a person would be asked, 20 it would be denied,
2 the command line is wrong, 3 something failed.`,
		Example: `  gatehouse check --op delete_element --args '{"element_type":"skill","name":"x"}'
  gatehouse check --op Bash --args '{"command":"git status"}' --dir .
  gatehouse check --op create_element --json
  gatehouse check --jsonl < calls.jsonl                   # or: gatehouse check --jsonl calls.jsonl
  gatehouse check --shell 'git log --output=/etc/x'       # by its words alone
  gatehouse check --shell 'make test' --cwd .             # on this machine, in this directory
  gatehouse check --shell --jsonl < commands.jsonl        # {"cmd": …} per line
  gatehouse check --plan plan.json                        # a composite tool's calls, as a whole`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			if shell {
				sh.policyFile = policyFile
				return sh.run(cmd, words, lines)
			}
			if lines {
				d := &decider{app: a, policyFile: policyFile, dry: dry}
				return d.file(cmd, words)
			}
			if len(words) > 0 {
				return usageError{fmt.Errorf("%q is not an option: name the operation with --op, or judge a command with --shell", words[0])}
			}
			d := &decider{app: a, policyFile: policyFile, dry: dry}
			if plan != "" {
				return d.plan(cmd, plan)
			}
			if in.Operation == "" {
				return usageError{errors.New("name the operation with --op, or give calls with --jsonl")}
			}
			// Nothing given is no arguments, not an empty text that is no JSON.
			if args != "" {
				if in.Args = jsontext.Value(args); !in.Args.IsValid() {
					return usageError{errors.New("--args is not JSON, or names a member twice")}
				}
			}
			if err := in.Endpoint.UnmarshalText([]byte(endpoint)); err != nil {
				return usageError{err}
			}
			got, err := d.decide(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.json {
				err = printJSON(out(cmd), got)
			} else {
				err = printDecision(out(cmd), in.Operation, got)
			}
			if err != nil {
				return err
			}
			return levelCode(got.Level)
		},
	})
	f := cmd.Flags()
	f.StringVar(&in.Operation, "op", "", "operation or tool")
	f.StringVar(&args, "args", "", "arguments, a JSON object")
	f.StringVar(&in.Kind, "kind", "", "native, external or dispatch (default: by the operation's name)")
	f.StringVar(&endpoint, "endpoint", "", "endpoint that a native operation is called on")
	f.StringVar(&in.ElementType, "type", "", "element type of a native operation")
	f.StringVar(&in.Dir, "dir", "", "working directory of the call")
	f.StringVar(&plan, "plan", "", "file with a composite tool's plan (\"-\" reads standard input)")
	f.StringVar(&policyFile, "policy", "", "policy file for a dry run")
	f.BoolVar(&dry, "dry-run", false, "use policy files alone even if a gate is running")
	f.BoolVar(&shell, "shell", false, "judge a command line; a dry run on policy files")
	f.StringVar(&sh.profile, "profile", "", "with --shell: the profile to judge by (default: the policy's)")
	f.StringVar(&sh.isolation, "isolation", "", "with --shell: what the command would run in: none, container or vm")
	f.StringVar(&sh.cwd, "cwd", "", "with --shell: the working directory; without it the words alone are judged")
	f.BoolVar(&lines, "jsonl", false, "read one call per line, from a file or standard input, and write one decision per line")
	return cmd
}

// file decides the calls in a file, or in standard input where none is named.
func (d *decider) file(cmd *cobra.Command, names []string) error {
	if len(names) == 0 || names[0] == "-" {
		return d.lines(cmd.Context(), cmd.InOrStdin(), out(cmd))
	}
	f, err := os.Open(names[0])
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	return d.lines(cmd.Context(), f, out(cmd))
}

// levelCode is the exit code of a level.
func levelCode(l call.Level) error {
	switch {
	case l == call.AutoApprove:
		return nil
	case l.Asks():
		return codeError(exitAsk)
	}
	return codeError(exitDeny)
}

// decider decides calls, by the running gate or on policy files alone.
type decider struct {
	app        *app
	policyFile string
	dry        bool

	client *client.Client
	snap   *policy.Snapshot
	home   string
}

// decide decides one call.
func (d *decider) decide(ctx context.Context, in *api.CallRequest) (*api.DecideResponse, error) {
	if !d.dry && d.policyFile == "" {
		if d.client == nil {
			var err error
			if d.client, err = d.app.asAgent(); err != nil {
				return nil, err
			}
		}
		got := &api.DecideResponse{}
		err := d.client.Do(ctx, "POST", "/v1/decide", in, got)
		if !errors.Is(err, client.ErrNoDaemon) {
			return got, err
		}
		fmt.Fprintln(os.Stderr, "No gate is running: a dry run on the policy files.")
		d.dry = true
	}
	return d.dryRun(ctx, in)
}

// dryRun decides on policy files alone: no session, no switches, no elements.
func (d *decider) dryRun(ctx context.Context, in *api.CallRequest) (*api.DecideResponse, error) {
	if err := d.compile(); err != nil {
		return nil, err
	}
	c, err := api.BuildCall(in, "check", call.Principal{Agent: "check", Session: "dry-run"})
	if err != nil {
		return nil, err
	}
	if err := c.Normalize(); err != nil {
		return nil, err
	}
	machine := &observe.Machine{Home: d.home}
	f := machine.Facts(ctx, c, d.snap)
	return api.NewDecideResponse(d.snap.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil), f), nil
}

// compile compiles the policy files, once.
func (d *decider) compile() error {
	if d.snap != nil {
		return nil
	}
	var files []string
	if d.policyFile != "" {
		files = []string{d.policyFile}
	}
	d.home, _ = os.UserHomeDir()
	var err error
	_, d.snap, err = d.app.snapshot(files)
	return err
}

// lines decides one call per line. The exit code is that of the strictest.
func (d *decider) lines(ctx context.Context, in io.Reader, w io.Writer) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, call.MaxArgs+64<<10)
	worst := call.AutoApprove
	buffered := bufio.NewWriter(w)
	defer buffered.Flush()
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		req := &api.CallRequest{}
		if err := json.Unmarshal(scanner.Bytes(), req, json.RejectUnknownMembers(true)); err != nil {
			return usageError{fmt.Errorf("line %d: %w", n, err)}
		}
		got, err := d.decide(ctx, req)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		worst = call.Join(worst, got.Level)
		line, err := json.Marshal(got)
		if err != nil {
			return err
		}
		if _, err := buffered.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	return levelCode(worst)
}

// printDecision shows a decision for people.
func printDecision(w io.Writer, operation string, d *api.DecideResponse) error {
	colour := map[call.Level]string{call.AutoApprove: green, call.ConfirmSession: yellow, call.ConfirmSingleUse: yellow, call.Deny: red}[d.Level]
	fmt.Fprintf(w, "%s  %s\n", paint(w, colour, d.Level.String()), match.Visible(operation))
	fmt.Fprintf(w, "because %s\n", match.Visible(d.Why))
	if d.Words != "" {
		fmt.Fprintf(w, "it %s\n", match.Visible(d.Words))
	}
	for _, u := range d.Uncommitted {
		fmt.Fprintf(w, "touches %s\n", match.Visible(u))
	}
	for _, u := range d.Destroys {
		fmt.Fprintf(w, "destroys %s\n", match.Visible(u))
	}
	var rows [][]string
	for _, v := range d.Votes {
		rows = append(rows, []string{v.Stage.String(), v.Level.String(), v.Source, v.Rule, v.Reason})
	}
	fmt.Fprintln(w)
	if err := table(w, "stage,level,source,rule,reason", rows); err != nil {
		return err
	}
	for _, c := range d.Conflicts {
		fmt.Fprintf(w, "overruled: %s wanted %s: %s\n", match.Visible(c.Source), c.Wanted, match.Visible(c.Reason))
	}
	_, err := fmt.Fprintf(w, "\ndigest %s\n", d.Digest)
	return err
}
