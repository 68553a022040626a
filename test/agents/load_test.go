package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// TestThousandCallsUnderLoad: with four busy loops on the machine a thousand
// calls are all answered inside the hook's shortest deadline. The hook itself
// blocks what is not, so an allow is the proof.
func TestThousandCallsUnderLoad(t *testing.T) {
	g := gatetest.Start(t)
	for range 4 {
		_, _, out := part(t, "busy", 0)
		if line, err := out.ReadString('\n'); line != "busy\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	hook := []string{
		filepath.Join(filepath.Dir(gatetest.Binary(t)), "gatehouse-hook"), "claude", "--socket", g.Socket(), "--owner", strconv.Itoa(os.Geteuid()),
	}
	const agents, calls = 4, 250
	var all sync.WaitGroup
	for n := range agents {
		a := newAgent(t, 0, hook...)
		all.Go(func() {
			for i := range calls {
				r := a.send("PreToolUse", fmt.Sprint("s", n), fmt.Sprint("t", i), "ls -l")
				if r.Exit != 0 || !strings.Contains(r.Stdout, `"allow"`) {
					t.Errorf("agent %d, call %d: %+v", n, i, r)
					return
				}
			}
		})
	}
	all.Wait()
}
