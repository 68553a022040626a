// Command gatehouse-hook is what an agent starts on every tool call: it hands
// the agent's event to the gate and gives the gate's answer back, byte for
// byte. It decides nothing; the only answer of its own is a block.
//
// `gatehouse hook` is the same. This binary exists because it starts ten times
// faster. Start reading at package forward.
package main

import (
	"os"

	"github.com/seed-3ebc6b8a/gatehouse/cmd/gatehouse-hook/forward"
)

func main() { os.Exit(forward.Main(os.Args[1:])) }
