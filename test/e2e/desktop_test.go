package e2e_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// screen is a display that nobody sees.
type screen struct {
	t       *testing.T
	display string
}

// newScreen starts an X server that ends with the test.
func newScreen(t *testing.T) *screen {
	t.Helper()
	needtest.Programs(t, "Xvfb", "xdotool", "xclip")
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1024x768x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{theirs}
	child(t, cmd)
	theirs.Close()
	number, err := bufio.NewReader(ours).ReadString('\n')
	if err != nil {
		t.Fatal("the X server said no number:", err)
	}
	return &screen{t, ":" + strings.TrimSpace(number)}
}

// child starts a program that ends with the test.
func child(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	})
}

// tool runs a program on the screen and returns what it printed.
func (s *screen) tool(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "DISPLAY="+s.display)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// window waits for the gate's dialog and returns it with its process.
func (s *screen) window() (id string, pid int) {
	s.t.Helper()
	id, err := s.tool("xdotool", "search", "--sync", "--onlyvisible", "--name", "^Gatehouse$")
	if err != nil {
		s.t.Fatal(err)
	}
	said, err := s.tool("xdotool", "getwindowpid", id)
	if err != nil {
		s.t.Fatal(err)
	}
	if pid, err = strconv.Atoi(said); err != nil {
		s.t.Fatal(err)
	}
	return id, pid
}

// text takes the text of a window as a person would: everything is marked and copied.
func (s *screen) text(window string) string {
	s.t.Helper()
	for {
		for _, args := range [][]string{{"windowfocus", "--sync", window}, {"key", "ctrl+a"}, {"key", "ctrl+c"}} {
			if _, err := s.tool("xdotool", args...); err != nil {
				s.t.Fatal(err)
			}
		}
		// The window answers its keys when it gets to them; nothing is copied before.
		if text, err := s.tool("xclip", "-o", "-selection", "clipboard"); err == nil && text != "" {
			return text
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ended returns when a process is gone.
func ended(pid int) {
	for {
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const onTheDesktop = "version = 1\n[[notify]]\nkind = \"desktop\"\n"

// onScreen starts a gate whose notices go to a desktop.
func onScreen(t *testing.T, env ...string) *world {
	t.Helper()
	g := gatetest.New(t)
	g.Env = append([]string{"DISPLAY=", "WAYLAND_DISPLAY=", "DBUS_SESSION_BUS_ADDRESS="}, env...)
	write(t, filepath.Join(g.Home, "policy.toml"), onTheDesktop)
	g.Up()
	return people(t, g)
}

// TestDialogShowsTheCode: a challenge's code comes up in a dialog on the desktop, with what it is for as
// text and nothing else: markup, options and escapes of an agent's call mean nothing there. The code is
// not where other processes can read it. The dialog goes when the code was handed in, when somebody
// answers otherwise, and with the gate.
func TestDialogShowsTheCode(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "zenity")
	s := newScreen(t)
	w := onScreen(t, "DISPLAY="+s.display, "GTK_MODULES=evil", "GATEHOUSE_TEST_SECRET=x")
	m := w.model(t, w.token)
	const nasty = `--help <span foreground='white' size='1'>small</span> &lt;b&gt; \n\033[1m$(id)` + "\x1b[1m\u200d"
	ask := func(name string) (request, challenge string) {
		asked := m.ok("confirm_operation", map[string]any{"operation": "complete_execution", "params": map[string]any{"execution_id": name}})
		request, challenge = asked.str("request"), asked.str("challenge", "challenge_id")
		if strings.Contains(asked.text, w.code(challenge)) {
			t.Fatalf("the agent is told the code: %s", asked.text)
		}
		return request, challenge
	}

	_, challenge := ask(nasty)
	id, pid := s.window()
	text, code := s.text(id), w.code(challenge)
	for _, part := range []string{code[:3] + " " + code[3:], "coder", `--help <span foreground='white' size='1'>small</span> &lt;b&gt; `, `$(id)`} {
		if !strings.Contains(text, part) {
			t.Errorf("the dialog does not show %q: %q", part, text)
		}
	}
	if strings.ContainsAny(text, "\x1b\u200d") {
		t.Errorf("the dialog shows control characters as such: %q", text)
	}
	for _, file := range []string{"cmdline", "environ"} {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, leak := range []string{code, code[:3] + " " + code[3:], "span", "GTK_MODULES", "GATEHOUSE_TEST_SECRET"} {
			if bytes.Contains(data, []byte(leak)) {
				t.Errorf("the dialog's %s holds %q: %q", file, leak, data)
			}
		}
	}
	if got := m.ok("verify_challenge", map[string]any{"challenge_id": challenge, "code": code}); got.str("state") != "moved" {
		t.Errorf("the code of the dialog: %s", got.text)
	}
	ended(pid)

	request, _ := ask("x_page")
	_, pid = s.window()
	w.approve(request)
	ended(pid)

	ask("x_end")
	_, pid = s.window()
	w.Stop()
	ended(pid)
}

// TestNoDialogIsSaid: with nothing to show a dialog on, the agent hears that nobody can be reached, and
// the code that nobody was shown is worth nothing.
func TestNoDialogIsSaid(t *testing.T) {
	t.Parallel()
	w := onScreen(t)
	m := w.model(t, w.token)
	asked := m.ok("confirm_operation", forget)
	if said := asked.str("challenge", "message"); !strings.Contains(said, "Nobody can be reached") {
		t.Errorf("without a desktop the agent is told %q", said)
	}
	// A display that is named but not there is none either.
	w = onScreen(t, "DISPLAY=:987654")
	m = w.model(t, w.token)
	asked = m.ok("confirm_operation", forget)
	if said := asked.str("challenge", "message"); !strings.Contains(said, "Nobody can be reached") {
		t.Errorf("with a display that does not answer the agent is told %q", said)
	}
}

// TestNoticeOnTheDesktop: a request that waits is made known through the desktop's own notification
// service, as text.
func TestNoticeOnTheDesktop(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "dunst", "dbus-daemon", "dbus-monitor")
	s := newScreen(t)
	bus := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address")
	said, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child(t, bus)
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"DISPLAY=" + s.display, "DBUS_SESSION_BUS_ADDRESS=" + strings.TrimSpace(address)}
	monitor := exec.Command("dbus-monitor", "--session", "interface=org.freedesktop.Notifications")
	monitor.Env = append(os.Environ(), env...)
	heard, err := monitor.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child(t, monitor)
	lines := bufio.NewReader(heard)
	if _, err := lines.ReadString('\n'); err != nil { // it listens
		t.Fatal(err)
	}
	service := exec.Command("dunst", "-conf", "/dev/null")
	service.Env = append(os.Environ(), env...)
	child(t, service)

	w := onScreen(t, env...)
	asked := w.want(gate.Pending, tool("Bash", "command", "curl https://example.com/<b>bold</b>"))
	// The service shows it in a window of its own.
	if _, err := s.tool("xdotool", "search", "--sync", "--onlyvisible", "--class", "Dunst"); err != nil {
		t.Fatal(err)
	}
	var message strings.Builder
	for !strings.Contains(message.String(), asked.Request) {
		text, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		message.WriteString(text)
	}
	if got := message.String(); !strings.Contains(got, "coder asks") || !strings.Contains(got, "/requests/") || strings.Contains(got, "<b>") {
		t.Errorf("the notice on the bus: %s", got)
	}
}
