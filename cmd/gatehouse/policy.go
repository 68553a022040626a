package main

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

func newPolicy(a *app) *cobra.Command {
	cmd := a.withCredential(&cobra.Command{
		Use: "policy", Short: "Check, explain and test policy files; accept changes that loosen",
		Example: `  gatehouse policy lint policy.toml
  gatehouse policy explain policy.toml
  gatehouse policy test policy.toml
  gatehouse policy status --credential-file me.key
  gatehouse policy accept --credential-file me.key --code 123456`,
	})
	cmd.AddCommand(newLint(a), newExplain(a), newPolicyTest(a), newSchema(), newPolicyStatus(a), newAccept(a), newTrust(a))
	return cmd
}

// policySet is the policy files of a command with the declarations of tools
// beside them.
type policySet struct {
	layers []policy.Layer
	tools  []argument.File
}

// readPolicies reads the files named, or those of this user's gate.
func (a *app) readPolicies(args []string) (*policySet, error) {
	if len(args) == 0 {
		p, err := place.Find(a.home)
		if err != nil {
			return nil, err
		}
		return readLayers([]layerFile{
			{policy.ScopeMachine, place.MachinePolicy, true}, {policy.ScopeMachine, place.Tools(place.MachinePolicy), true},
			{policy.ScopeUser, p.Policy(), true}, {policy.ScopeUser, place.Tools(p.Policy()), true},
		})
	}
	var files []layerFile
	for _, path := range args {
		scope := policy.ScopeUser
		if filepath.Base(path) == place.ProjectPolicy {
			scope = policy.ScopeProject
		}
		files = append(files, layerFile{scope, path, false})
	}
	return readLayers(files)
}

type layerFile struct {
	scope    policy.Scope
	path     string
	optional bool
}

// readLayers reads and parses files, and reports every problem of all of them.
// Those in YAML declare tools.
func readLayers(files []layerFile) (*policySet, error) {
	set := &policySet{}
	var problems []error
	for _, f := range files {
		data, err := os.ReadFile(f.path)
		if f.optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if isYAML(f.path) {
			tools, err := declare.Parse(data)
			if err != nil {
				problems = append(problems, policy.Problems{{File: f.path, Message: err.Error()}})
				continue
			}
			set.tools = append(set.tools, argument.File{Source: f.path, Set: tools})
			continue
		}
		parsed, err := policy.Parse(f.path, data)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		set.layers = append(set.layers, policy.Layer{Scope: f.scope, File: parsed})
	}
	return set, errors.Join(problems...)
}

// isYAML says whether a file's name is that of declarations of tools.
func isYAML(name string) bool { return filepath.Ext(name) == ".yaml" || filepath.Ext(name) == ".yml" }

// compile compiles the files as the daemon would.
func (s *policySet) compile() (*policy.Snapshot, error) {
	home, _ := os.UserHomeDir() // a policy that needs it says so
	return policy.Compile(s.layers, policy.Options{Home: home, Tools: s.tools})
}

// warnings are what is allowed and still deserves a second look.
func (s *policySet) warnings() []string {
	var out []string
	for _, f := range s.tools {
		for _, w := range f.Set.Lint() {
			out = append(out, f.Source+": "+w)
		}
	}
	return out
}

// snapshot reads and compiles the files named, or those of this user's gate.
func (a *app) snapshot(args []string) (*policySet, *policy.Snapshot, error) {
	set, err := a.readPolicies(args)
	if err != nil {
		return nil, nil, err
	}
	snap, err := set.compile()
	return set, snap, err
}

func newLint(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "lint [FILE or DIRECTORY...]", Short: "Find everything that is wrong in policy files, with file and line",
		Long: `Checks policy files, declarations of tools (YAML), and directories of files about programs.
Without arguments it checks those of this user's gate.`,
		Example: `  gatehouse policy lint
  gatehouse policy lint policy.toml tools.yaml
  gatehouse policy lint ./knowledge      # what your own programs do, with its examples`,
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := a.knowledgeProblems(args)
			set := &policySet{}
			if err == nil && (len(rest) > 0 || len(args) == 0) {
				set, err = a.readPolicies(rest)
			}
			var snap *policy.Snapshot
			if err == nil {
				snap, err = set.compile()
			}
			var problems policy.Problems
			switch {
			case errors.As(err, &problems):
			case err != nil:
				return err
			default:
				problems = snap.Ignored
			}
			if a.json {
				if perr := printJSON(out(cmd), map[string]any{"problems": problems, "warnings": set.warnings(), "ok": err == nil}); perr != nil {
					return perr
				}
			} else if err != nil {
				fmt.Fprintln(out(cmd), err)
			} else {
				for _, p := range problems {
					fmt.Fprintln(out(cmd), "ignored: "+p.String())
				}
				for _, w := range set.warnings() {
					fmt.Fprintln(out(cmd), "warning: "+w)
				}
				fmt.Fprintf(out(cmd), "%d file(s), no problem.\n", len(set.layers)+len(set.tools))
			}
			if err != nil {
				return codeError(1)
			}
			return nil
		},
	})
}

func newExplain(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "explain [FILE...]", Short: "Show what is in force and where each part of it comes from",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, snap, err := a.snapshot(args)
			if err != nil {
				return err
			}
			e := snap.Explain()
			if a.json {
				return printJSON(out(cmd), e)
			}
			_, err = fmt.Fprintln(out(cmd), e.String())
			return err
		},
	})
}

func newPolicyTest(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "test [FILE...]", Short: "Run the examples and tests that policy files carry",
		RunE: func(cmd *cobra.Command, args []string) error {
			set, snap, err := a.snapshot(args)
			if err != nil {
				return err
			}
			var results []policy.TestResult
			for _, l := range set.layers {
				results = append(results, snap.RunTests(l.File, analyse)...)
			}
			if a.json {
				err = printJSON(out(cmd), results)
			} else {
				err = printTests(out(cmd), results)
			}
			if err == nil && slices.ContainsFunc(results, func(r policy.TestResult) bool { return !r.OK() }) {
				return codeError(1)
			}
			return err
		},
	})
}

// analyse describes a command as the gate would, by its words alone.
func analyse(command string) (*facts.Facts, error) {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return nil, err
	}
	c := &call.Call{Kind: call.External, Operation: call.OpShell, Args: args}
	return facts.Extract(c, nil, &facts.Options{}), nil
}

func printTests(w io.Writer, results []policy.TestResult) error {
	failed := 0
	for _, r := range results {
		mark := paint(w, green, "ok  ")
		if !r.OK() {
			mark = paint(w, red, "FAIL")
			failed++
		}
		fmt.Fprintf(w, "%s  %s: %s\n", mark, r.Source, r.Name)
		if !r.OK() {
			fmt.Fprintf(w, "      wanted %s, got %s: %s%s\n", r.Want, r.Got, r.Why, r.Problem)
		}
	}
	_, err := fmt.Fprintf(w, "%d test(s), %d failed. The examples of rules were checked when the files were read.\n", len(results), failed)
	return err
}

func newSchema() *cobra.Command {
	var tools bool
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of policy files, for editors", Args: cobra.NoArgs,
		Example: `  gatehouse policy schema > policy.schema.json
  gatehouse policy schema --tools > tools.schema.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			make := policy.Schema
			if tools {
				make = declare.JSONSchema
			}
			s, err := make()
			if err != nil {
				return err
			}
			enc := stdjson.NewEncoder(out(cmd))
			enc.SetIndent("", "  ")
			return enc.Encode(s)
		},
	}
	cmd.Flags().BoolVar(&tools, "tools", false, "that of declarations of tools")
	return cmd
}

func newPolicyStatus(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use: "status", Short: "Show the policy in force, what did not load and what waits", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &admin.Policy{}
			return a.show(cmd, "/v1/policy", got, func() error {
				fmt.Fprintf(out(cmd), "in force  %s  profile %s, mode %s\n", got.Hash, got.Profile, got.Mode)
				for _, f := range got.Files {
					fmt.Fprintf(out(cmd), "file      %s\n", f)
				}
				for _, b := range got.Broken {
					fmt.Fprintf(out(cmd), "%s    %s\n", paint(out(cmd), red, "broken"), b)
				}
				if s := got.Staged; s != nil {
					fmt.Fprintf(out(cmd), "%s    %s, since %s\n", paint(out(cmd), yellow, "staged"), s.Hash, stamp(s.Since))
					for _, c := range s.Changes {
						fmt.Fprintf(out(cmd), "          %s\n", c)
					}
				}
				return nil
			})
		},
	})
}

func newAccept(a *app) *cobra.Command {
	var code string
	cmd := &cobra.Command{
		Use: "accept", Short: "Accept the staged change that loosens", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got := &admin.Policy{}
			if err := a.do(cmd, "GET", "/v1/policy", nil, got); err != nil {
				return err
			}
			if got.Staged == nil {
				return errors.New("nothing is staged")
			}
			if err := a.do(cmd, "POST", "/v1/policy/accept", &api.AcceptRequest{Hash: got.Staged.Hash, Code: code}, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(out(cmd), "In force: %s\n", got.Staged.Hash)
			return err
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "one-time code of your authenticator")
	return cmd
}

func newTrust(a *app) *cobra.Command {
	var code string
	cmd := &cobra.Command{
		Use: "trust FILE", Short: "Take a project's policy file as it is on disk: it may loosen, or be gone", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return a.do(cmd, "POST", "/v1/policy/trust", &api.TrustRequest{Path: path, Code: code}, nil)
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "one-time code of your authenticator")
	return cmd
}
