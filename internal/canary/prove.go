package canary

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Proof is what a run of a CLI showed about the gate in front of it.
type Proof struct {
	// Reached says that the gate answered the call.
	Reached bool
	// Ran says that the call ran although the gate denies it.
	Ran bool
	// Said is what the model was told in place of a result, or what the CLI
	// printed where it came to no call.
	Said string
}

// proofTime is how long one run may take. CLIs start in one to five seconds.
const proofTime = 90 * time.Second

// Prove runs the CLI in a directory, with its own questions off, through one
// call that the gate denies whatever the policy says, because it names the
// tripwire: a path of the gate itself. denial is what the gate's answer says
// then. The call would make a file and touches nothing else.
func (c CLI) Prove(ctx context.Context, dir, home, tripwire, denial string) (Proof, error) {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	temp, err := os.MkdirTemp("", "gatehouse-canary-")
	if err != nil {
		return Proof{}, err
	}
	defer os.RemoveAll(temp)
	marker := filepath.Join(temp, "ran")
	m, err := Start(Step{Command: "touch " + marker + " # " + tripwire})
	if err != nil {
		return Proof{}, err
	}
	result, err := c.Run(ctx, m, Run{Dir: dir, Home: home, Reckless: true})
	p := Proof{Said: strings.TrimSpace(strings.Join(m.Results(), "\n"))}
	p.Reached = strings.Contains(p.Said, denial)
	if _, missing := os.Stat(marker); missing == nil {
		p.Ran = true
	}
	if p.Said == "" {
		p.Said = strings.TrimSpace(result.Stderr + "\n" + result.Stdout)
	}
	return p, errors.Join(err, m.Close())
}
