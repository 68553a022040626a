package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

func newRun() *cobra.Command {
	var o sandbox.Options
	var hosts, env []string
	var anyHost, inherit bool
	var backend string
	cmd := &cobra.Command{
		Use:   "run [options] -- COMMAND [ARGUMENTS]",
		Short: "Run a command with no more than it needs: its files, its hosts, its variables",
		Long: `Runs a command confined by the kernel. Without options it reads the working directory
and what a program needs to start, writes nothing, has no network and a small
environment. What no back-end on this machine can hold is refused, not widened.`,
		Example: `  gatehouse run -- go vet ./...
  gatehouse run --write . -- make build
  gatehouse run --write . --net api.example.com:443 -- ./fetch
  gatehouse run --explain --write ./out -- ./generate`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name the command to run after --")}
			}
			o.Spec.Command, o.Spec.Backend, o.Interactive = args, sandbox.Backend(backend), true
			switch {
			case anyHost:
				o.Spec.Net.Mode = sandbox.NetPublic
			case len(hosts) > 0:
				o.Spec.Net.Mode, o.Spec.Net.Allow = sandbox.NetHosts, hosts
			}
			if len(env) > 0 {
				o.Spec.Env.Pass = env
			}
			o.Spec.Env.Inherit = inherit
			code, _ := sandbox.Main(cmd.Context(), o, os.Stdin, os.Stdout, os.Stderr)
			if code != 0 {
				return codeError(code)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringSliceVar(&o.Spec.Read, "read", nil, "path or glob it may read (default: the working directory)")
	f.StringSliceVar(&o.Spec.Write, "write", nil, "path it may write")
	f.StringSliceVar(&o.Spec.Protected, "protect", nil, "path or name that stays unchanged inside what it may write")
	f.StringSliceVar(&hosts, "net", nil, "host or host:port it may reach")
	f.BoolVar(&anyHost, "net-public", false, "it may reach any public host, never this machine's own network")
	f.StringSliceVar(&env, "env", nil, "variable it gets (default: PATH, HOME, LANG, TERM, TMPDIR, USER)")
	f.BoolVar(&inherit, "inherit-env", false, "it gets all variables but those that load code")
	f.StringVar(&o.Spec.Dir, "cwd", "", "working directory")
	f.StringVar(&backend, "backend", "", "force a back-end: bubblewrap, landlock, firejail, podman, docker, wasm")
	f.BoolVar(&o.Spec.AllowUnconfined, "unconfined", false, "run without a sandbox where none will do; loud, and never by itself")
	f.BoolVar(&o.Explain, "explain", false, "print what would be enforced by what, and run nothing")
	return cmd
}
