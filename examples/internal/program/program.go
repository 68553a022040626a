package program

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/serve"
)

// Main serves the tools of an agent.
func Main(spec tool.AgentSpec) {
	sandbox.MaybeLaunch() // first: inside a sandbox this process is its second stage
	noGate := flag.Bool("no-gate", false, "serve without a gate: the declarations alone hold")
	flag.StringVar(&spec.Workspace, "workspace", "", "what relative paths are relative to (default: the working directory)")
	flag.Parse()
	if err := run(spec, *noGate); err != nil {
		log.Fatal(err)
	}
}

func run(spec tool.AgentSpec, noGate bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if !noGate {
		gate, err := tool.Connect(tool.GateOptions{Dir: spec.Workspace})
		if err != nil {
			return err
		}
		spec.Gate = gate
	}
	agent, err := tool.NewAgent(spec)
	if err != nil {
		return err
	}
	return serve.Stdio(ctx, agent)
}
