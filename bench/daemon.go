package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	daemonRuns = 20
	helloRuns  = 40
	// idle is how long the daemon is left alone before its memory is read.
	idle = 3 * time.Second
)

// measureDaemon builds the program and measures its start, on a fresh data
// directory and then on the same again, as the best of several runs.
func measureDaemon(ctx context.Context) measured {
	const command = "./cmd/gatehouse"
	if _, err := os.Stat(command); errors.Is(err, fs.ErrNotExist) {
		return measured{problem: command + " does not exist"}
	}
	dir, err := os.MkdirTemp("", "gatehouse-bench-")
	if err != nil {
		return measured{problem: err.Error()}
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"hello, world\") }\n"), 0o600); err != nil {
		return measured{problem: err.Error()}
	}
	gatehouse, hello := filepath.Join(dir, "gatehouse"), filepath.Join(dir, "hello")
	if err := errors.Join(goBuild(ctx, gatehouse, command), goBuild(ctx, hello, source)); err != nil {
		return measured{problem: err.Error()}
	}

	base, best := math.Inf(1), math.Inf(1)
	var memory float64
	for i := range daemonRuns {
		// In turns, so that both meet the machine in the same mood.
		for range helloRuns / daemonRuns {
			began := time.Now()
			if err := exec.CommandContext(ctx, hello).Run(); err != nil {
				return measured{problem: fmt.Sprintf("hello world: %v", err)}
			}
			base = min(base, time.Since(began).Seconds()*1000)
		}
		took, resident, err := startDaemon(ctx, gatehouse, filepath.Join(dir, "data"), i == daemonRuns-1)
		if err != nil {
			return measured{problem: fmt.Sprintf("gatehouse up: %v", err)}
		}
		best, memory = min(best, took.Seconds()*1000), resident
	}
	values := map[metric]float64{{"daemon/hello", "ms"}: base, {"daemon/start", "ms"}: best}
	if memory > 0 {
		values[metric{"daemon/idle", "MiB"}] = memory
	}
	return measured{values: values}
}

func goBuild(ctx context.Context, out, what string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", what, err, said)
	}
	return nil
}

// startDaemon starts the daemon, waits for its first answer, reads its memory
// after a rest where that is wanted, and stops it.
func startDaemon(ctx context.Context, program, data string, wantMemory bool) (took time.Duration, resident float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "up", "--data", data, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(data), "GATEHOUSE_HOME="+data)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := firstAnswer(ctx, filepath.Join(data, "gatehouse.sock"), ended); err != nil {
		cancel()
		return 0, 0, fmt.Errorf("%w\n%s", err, &said)
	}
	took = time.Since(began)
	if wantMemory {
		time.Sleep(idle)
		resident = residentMiB(cmd.Process.Pid)
	}
	cancel()
	<-ended // its exit status is that of an interrupt
	return took, resident, nil
}

// firstAnswer asks the daemon's socket for its health until it answers.
func firstAnswer(ctx context.Context, socket string, ended <-chan error) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gatehouse/v1/health", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			return fmt.Errorf("GET /v1/health answered %s", response.Status)
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it ended before it answered: %w", err)
		case <-ctx.Done():
			return errors.New("it did not answer in time")
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// residentMiB reads the resident memory of a process where the system shows it
// in /proc, and returns 0 elsewhere.
func residentMiB(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}
