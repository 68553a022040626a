package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// hookFolder is the folder of figures that are measured here, by processes.
const hookFolder = "cmd/gatehouse-hook"

const hookRuns = 60

// measureHook measures what an agent pays for each tool call: the hook from its
// start to its end, with the gate running, against a program that does nothing.
func measureHook(ctx context.Context) measured {
	dir, err := os.MkdirTemp("", "gh-bench-")
	if err != nil {
		return measured{problem: err.Error()}
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "nothing.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return measured{problem: err.Error()}
	}
	program := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(goBuild(ctx, program("nothing"), source), goBuild(ctx, program("hook"), "./cmd/gatehouse-hook"), goBuild(ctx, program("gatehouse"), "./cmd/gatehouse")); err != nil {
		return measured{problem: err.Error()}
	}
	data := filepath.Join(dir, "data")
	up := exec.CommandContext(ctx, program("gatehouse"), "up", "--data", data, "--listen", "127.0.0.1:0")
	up.Env = append(os.Environ(), "HOME="+dir)
	up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
	if err := up.Start(); err != nil {
		return measured{problem: err.Error()}
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	defer func() {
		_ = up.Process.Signal(os.Interrupt) // it is measured no more
		<-ended
	}()
	socket := filepath.Join(data, "gatehouse.sock")
	if err := firstAnswer(ctx, socket, ended); err != nil {
		return measured{problem: err.Error()}
	}
	nothing, hook := math.Inf(1), math.Inf(1)
	for i := range hookRuns {
		// In turns, so that both meet the machine in the same mood.
		began := time.Now()
		if err := exec.CommandContext(ctx, program("nothing")).Run(); err != nil {
			return measured{problem: err.Error()}
		}
		nothing = min(nothing, time.Since(began).Seconds()*1000)
		event := fmt.Sprintf(`{"session_id":"bench","cwd":%q,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls -l"},"tool_use_id":"t%d"}`, dir, i)
		cmd := exec.CommandContext(ctx, program("hook"), "claude", "--socket", socket, "--owner", strconv.Itoa(os.Geteuid()))
		cmd.Stdin = bytes.NewReader([]byte(event))
		began = time.Now()
		out, err := cmd.Output()
		hook = min(hook, time.Since(began).Seconds()*1000)
		if err != nil || !bytes.Contains(out, []byte(`"allow"`)) {
			return measured{problem: fmt.Sprintf("the hook answered %q: %v", out, err)}
		}
	}
	return measured{values: map[metric]float64{{"hook/nothing", "ms"}: nothing, {"hook/answer", "ms"}: hook}}
}
