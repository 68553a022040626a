package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/cmd/gatehouse-hook/forward"
)

func newHook() *cobra.Command {
	return &cobra.Command{
		Use:   "hook AGENT --socket PATH --owner UID [options]",
		Short: "Answer one event of an agent's hook; gatehouse-hook does the same and starts faster",
		Long: `Reads an agent's hook event on standard input, hands it to the gate and prints the
gate's answer as it is. Whatever goes wrong blocks: exit code 2, with the reason on
standard error. ` + "`gatehouse connect`" + ` writes the command line into the agent's settings;
the environment has no say in it.

Options: --socket PATH and --owner UID say where the gate is and whose it must be;
--program FILE and --home DIR start it when it is away; --deadline SECONDS is when the
answer must be out; --defer lets a headless Claude Code come back later.`,
		Example:            `  gatehouse hook claude --socket ~/.local/share/gatehouse/gatehouse.sock --owner 1000 < event.json`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			if code := forward.Main(args); code != 0 {
				return codeError(code)
			}
			return nil
		},
	}
}
