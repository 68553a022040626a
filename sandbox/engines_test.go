//go:build linux

package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// needBackend ends a test where a back-end does not run for the user of the
// attempts. Engines need not do anything for ordinary users.
func needBackend(t *testing.T, b sandbox.Backend) {
	t.Helper()
	missing := func(err error) {
		t.Helper()
		if os.Getuid() != 0 {
			t.Skipf("%s does not run for this user: %v", b, err)
		}
		needtest.Missing(t, fmt.Sprintf("%s does not run here: %v", b, err))
	}
	if b == sandbox.Docker {
		if err := dockerEngine(); err != nil {
			missing(err)
		}
	}
	h := newHost(t, escapeUser)
	defer h.close()
	s := h.spec(b)
	s.Command = []string{"/bin/true"}
	if _, err := sandbox.Run(t.Context(), s); err != nil {
		missing(err)
	}
}

// dockerEngine makes sure that an engine answers where Docker's command looks
// for one: it starts one for these tests if there is none, without a network of
// its own and with all it keeps in a temporary directory.
var dockerEngine = sync.OnceValue(func() error {
	if exec.Command("docker", "version").Run() == nil {
		return nil
	}
	program, err := exec.LookPath("dockerd")
	if err != nil {
		return err
	}
	if os.Getuid() != 0 {
		return errors.New("no engine is running, and only root can start one")
	}
	dir, err := os.MkdirTemp("", "gh-docker-")
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=vfs",
		"--data-root="+dir+"/data", "--exec-root="+dir+"/exec", "--pidfile="+dir+"/pid")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	var said strings.Builder
	go func() {
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "API listen on") {
				ready <- true
				break
			}
			said.WriteString(lines.Text() + "\n")
		}
		for lines.Scan() { // an engine that nobody listens to waits
		}
		close(ready)
	}()
	cleanups = append(cleanups, func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		for range ready {
		}
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	if !<-ready {
		return errors.New("the engine did not start: " + said.String())
	}
	return nil
})
