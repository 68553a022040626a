package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// shellCheck judges command lines on policy files alone.
type shellCheck struct {
	app        *app
	policyFile string
	profile    string
	isolation  string
	cwd        string

	snap *policy.Snapshot
	home string
}

// shellLine is a line of the answer to --jsonl.
type shellLine struct {
	Cmd   string     `json:"cmd"`
	Level call.Level `json:"level"`
	Class string     `json:"class"`
	Why   string     `json:"why"`
}

func (s *shellCheck) run(cmd *cobra.Command, words []string, lines bool) error {
	if err := s.prepare(); err != nil {
		return err
	}
	if lines {
		return s.lines(cmd.InOrStdin(), out(cmd))
	}
	if len(words) != 1 {
		return usageError{errors.New("give one command line with --shell, in quotes, or many with --jsonl")}
	}
	d, f, err := s.judge(words[0])
	if err != nil {
		return err
	}
	got := api.NewDecideResponse(d, f)
	if s.app.json {
		err = printJSON(out(cmd), struct {
			*api.DecideResponse
			Needs        []call.Need     `json:"needs,omitzero"`
			Commands     []string        `json:"commands,omitzero"`
			Irreversible bool            `json:"irreversible,omitzero"`
			RiskEvidence []call.Evidence `json:"risk_evidence,omitzero"`
		}{got, f.Needs, f.Commands, f.Irreversible, f.RiskEvidence})
	} else {
		fmt.Fprintf(out(cmd), "class %s, risk %d\n", f.Class, f.Risk)
		err = printDecision(out(cmd), words[0], got)
		if s.cwd == "" && d.Level != call.AutoApprove {
			fmt.Fprintln(cmd.ErrOrStderr(), "Only the words were judged; --cwd DIR has paths, links and programs looked at as well.")
		}
	}
	if err != nil {
		return err
	}
	return levelCode(d.Level)
}

// prepare compiles the policy, with another profile if one was asked for.
func (s *shellCheck) prepare() error {
	var files []string
	if s.policyFile != "" {
		files = []string{s.policyFile}
	}
	set, err := s.app.readPolicies(files)
	if err != nil {
		return err
	}
	layers := set.layers
	if s.profile != "" {
		text := fmt.Sprintf("version = 1\nprofile = %s\n", quoteJSON(s.profile))
		f, err := policy.Parse("--profile", []byte(text))
		if err != nil {
			return usageError{err}
		}
		layers = []policy.Layer{{Scope: policy.ScopeUser, File: f}}
	}
	s.home, _ = os.UserHomeDir()
	if s.cwd != "" {
		if s.cwd, err = filepath.Abs(s.cwd); err != nil {
			return err
		}
	}
	opts := policy.Options{Home: s.home, Isolation: s.isolation, Tools: set.tools}
	if s.policyFile == "" {
		if opts.Knowledge, err = s.app.knowledge(); err != nil {
			return err
		}
	}
	s.snap, err = policy.Compile(layers, opts)
	return err
}

// judge decides one command line.
func (s *shellCheck) judge(command string) (call.Decision, *facts.Facts, error) {
	if len(command) > shell.MaxBytes {
		// A call may carry more than a command may have; the analysis says so
		// itself, but only a call that can be read gets that far.
		command = command[:shell.MaxBytes+1]
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return call.Decision{}, nil, err
	}
	c := &call.Call{
		Kind: call.External, Surface: "check", Operation: call.OpShell, Args: args, Dir: observe.RealDir(s.cwd),
		Principal: call.Principal{Agent: "check", Session: "dry-run"},
	}
	if err := c.Normalize(); err != nil {
		return call.Decision{}, nil, err
	}
	var f *facts.Facts
	if s.cwd == "" {
		f = facts.Extract(c, nil, &facts.Options{Home: s.home, Knowledge: s.snap.Knowledge})
	} else {
		f = (&observe.Machine{Home: s.home}).Facts(context.Background(), c, s.snap)
	}
	return s.snap.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil), f, nil
}

// lines judges one {"cmd": …} per line.
func (s *shellCheck) lines(in io.Reader, w io.Writer) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, call.MaxArgs+64<<10)
	buffered := bufio.NewWriter(w)
	defer buffered.Flush()
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var line struct {
			Cmd string `json:"cmd"`
		}
		// Other members are the caller's notes and are passed over.
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return usageError{fmt.Errorf("line %d: %w", n, err)}
		}
		d, f, err := s.judge(line.Cmd)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		text, err := json.Marshal(shellLine{Cmd: line.Cmd, Level: d.Level, Class: f.Class, Why: f.Words})
		if err != nil {
			return err
		}
		if _, err := buffered.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return scanner.Err()
}
