package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// app is what all commands share.
type app struct {
	home       string
	credential string
	json       bool
}

// newRoot builds the command tree.
func newRoot() *cobra.Command {
	a := &app{}
	root := &cobra.Command{
		Use:   "gatehouse",
		Short: "One gate for every action an AI agent takes",
		Long: `Gatehouse stands between AI agents and everything they can touch. Each action is
described, decided, approved by a person where the policy asks for one, run
confined, and recorded in a log that proves what happened.`,
		Example: `  gatehouse up                        start the gate (console, API, MCP, hook socket)
  gatehouse demo                      watch a scripted agent meet allow, ask and deny
  gatehouse check --op delete_element see how a call would be decided, and why
  gatehouse approvals watch --credential-file me.key
  gatehouse audit verify              prove that the log was not changed`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nrun `%s --help` for its options", err, cmd.CommandPath())}
	})
	root.PersistentFlags().StringVar(&a.home, "data", "", "directory of the gate (default $GATEHOUSE_HOME or the user's data directory)")
	root.AddCommand(
		newUp(a), newInit(a), newRun(a), newChanges(a), newHook(), newConnect(a), newInstall(a), newUninstall(a), newDemo(a), newDoctor(a), newVersion(a),
		newCheck(a), newPolicy(a), newElement(a), newManifest(a),
		newApprovals(a), newSessions(a), newGrants(a), newBudgets(a), newTaint(a), newUses(a), newRestore(a), newKill(a), newDanger(a), newExecutions(a),
		newAsk(a), newJobs(a), newReview(a), newTrace(a), newMCP(a), newUpstream(a), newAudit(a), newApprover(a), newAgent(a), newMan(),
	)
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(newHelp())
	wrapArgs(root)
	return root
}

// newHelp prints what a command does. Unlike cobra's own it does not answer a
// question about a command that is not there with something else.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND …]", Short: "What a command does",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("%s has no command %q; run `%s --help`", about.CommandPath(), rest[0], about.CommandPath())
			}
			if err != nil {
				return usageError{err}
			}
			return about.Help()
		},
	}
}

// wrapArgs makes a wrong number of arguments a usage error everywhere.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{fmt.Errorf("%w\nusage: %s", err, cmd.UseLine())}
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%s has no command %q; run `%s --help`", cmd.CommandPath(), args[0], cmd.CommandPath())}
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// withCredential adds the flag that says who acts.
func (a *app) withCredential(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentFlags().StringVar(&a.credential, "credential-file", os.Getenv("GATEHOUSE_CREDENTIAL_FILE"),
		"file with an approver's credential (\"-\" reads standard input)")
	return cmd
}

// withJSON adds the flag for machine-readable output.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// client returns the way to the daemon, with the credential if one is given.
func (a *app) client() (*client.Client, error) {
	p, err := place.Reach(a.home)
	if err != nil {
		return nil, err
	}
	secret, err := client.Secret(a.credential)
	if err != nil {
		return nil, usageError{err}
	}
	return client.Unix(p.Socket(), secret), nil
}

// asAgent returns the way to the daemon for commands that act as an agent
// would. An approver's credential, which a variable may name for all commands,
// has no business there.
func (a *app) asAgent() (*client.Client, error) {
	p, err := place.Reach(a.home)
	if err != nil {
		return nil, err
	}
	return client.Unix(p.Socket(), ""), nil
}

// errorText says what went wrong and, where it is known, what to do.
func errorText(err error) string {
	var e *api.Error
	if errors.As(err, &e) && e.Hint != "" {
		return e.Text + "\n" + e.Hint
	}
	return err.Error()
}

// out is where a command prints to.
func out(cmd *cobra.Command) io.Writer { return cmd.OutOrStdout() }

// dataPath names something in the gate's directory.
func (a *app) dataPath(name string) string {
	p, err := place.Reach(a.home)
	if err != nil {
		return name
	}
	return filepath.Join(p.Home, name)
}
