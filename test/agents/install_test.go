package agents_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// installScript runs in mounts and processes of its own: everything that an
// installation writes goes to layers that end with it. It prints what the test
// looks at. The gate is started by its unit's own command line, with the unit's
// user, capabilities and socket, as systemd would.
const installScript = `set -eu
mount --make-rprivate /
mount -t tmpfs none "$LAYERS"
for dir in /etc /usr/local /var/lib /home; do
	up="$LAYERS$dir"; mkdir -p "$up/upper" "$up/work"
	mount -t overlay overlay -o "lowerdir=$dir,upperdir=$up/upper,workdir=$up/work" "$dir"
done
mount -t tmpfs -o mode=0755 none /run
useradd -m ann
"$GATEHOUSE" install --system --for ann --listen "$LISTEN"
echo "account $(getent passwd gatehouse)"
stat -c 'stat %n %U %G %a' /usr/local/bin/gatehouse /usr/local/bin/gatehouse-hook /usr/local/bin/gatehouse-launch \
	/etc/systemd/system/gatehouse.service /etc/systemd/system/gatehouse.socket /var/lib/gatehouse
systemd-analyze verify --man=no /etc/systemd/system/gatehouse.socket /etc/systemd/system/gatehouse.service 2>&1 | grep -i gatehouse | sed 's/^/verify /' || true

unit() { sed -n "s/^$1=//p" /etc/systemd/system/gatehouse.service; }
caps=$(unit AmbientCapabilities | tr 'A-Z' 'a-z' | sed 's/cap_/+/g; s/ /,/g')
socket=$(sed -n 's/^ListenStream=//p' /etc/systemd/system/gatehouse.socket)
mkdir -m 0755 "$(dirname "$socket")"
start() {
	(umask 0; exec systemd-socket-activate -l "$socket" -E "$(unit Environment)" -E "PATH=$PATH" \
		setpriv --reuid "$(unit User)" --regid "$(unit Group)" --clear-groups --bounding-set "-all,$caps" --inh-caps "-all,$caps" --ambient-caps "-all,$caps" --no-new-privs \
		sh -c "umask $(unit UMask); exec $(unit ExecStart)" 2>/var/lib/log) &
	until [ -S "$socket" ]; do sleep 0.1; done
	chmod "$(sed -n 's/^SocketMode=//p' /etc/systemd/system/gatehouse.socket)" "$socket"
}
start
/usr/local/bin/gatehouse approver add boss > /root/boss.key 2>/dev/null && echo "enrolled"
for dir in /proc/[0-9]*; do if [ "$(readlink "$dir/exe")" = /usr/local/bin/gatehouse ]; then gate=${dir#/proc/}; fi; done
echo "daemon $(stat -c %U "/proc/$gate") $(sed -n 's/^NoNewPrivs:[[:space:]]*//p' "/proc/$gate/status")"
stat -c 'stat %n %U %G %a' /var/lib/gatehouse/keys /var/lib/gatehouse/gatehouse.db

as_ann() { setpriv --reuid ann --regid ann --clear-groups env HOME=/home/ann "$@"; }
attack() { if as_ann sh -c "$2" >/dev/null 2>&1; then echo "attack $1: SUCCEEDED"; else echo "attack $1: failed"; fi; }
attack "look into the data" "ls /var/lib/gatehouse"
attack "read a key" "cat /var/lib/gatehouse/keys/*"
attack "write the database" "echo x >> /var/lib/gatehouse/gatehouse.db"
attack "replace the program" "cp /bin/true /usr/local/bin/gatehouse"
attack "replace the hook" "cp /bin/true /usr/local/bin/gatehouse-hook"
attack "edit the unit" "echo >> /etc/systemd/system/gatehouse.service"
attack "take the socket away" "rm -f $socket; test ! -e $socket"
attack "put another socket in its place" "mv $socket $socket.old"
attack "end it" "kill -9 $gate"
attack "read its memory" "head -c 1 /proc/$gate/mem"
attack "enrol an approver" "/usr/local/bin/gatehouse approver add eve"
attack "approve with a stolen name" "/usr/local/bin/gatehouse approvals list"
as_ann /usr/local/bin/gatehouse doctor --no-canary | sed 's/^/doctor /' || true
as_ann /usr/local/bin/gatehouse connect claude | sed 's/^/connect /'
echo '{"session_id":"5f","cwd":"/home/ann","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"cat /var/lib/gatehouse/keys/log"},"tool_use_id":"t1"}' > /home/ann/event
cp /bin/sh /home/ann/agent # a program that an agent could be; the shell itself is never one
as_ann /home/ann/agent -c "/usr/local/bin/gatehouse-hook claude --socket $socket --owner $(id -u gatehouse) < /home/ann/event 2>&1; echo hook exit \$?"

/usr/local/bin/gatehouse uninstall --system --for ann
for left in /usr/local/bin/gatehouse /usr/local/bin/gatehouse-hook /usr/local/bin/gatehouse-launch /etc/systemd/system/gatehouse.service /etc/systemd/system/gatehouse.socket; do
	if [ -e "$left" ]; then echo "left $left"; fi
done
if [ -e /var/lib/gatehouse/gatehouse.db ]; then echo "the data stays"; fi
`

// TestInstallSystem installs the gate as the administrator would, with a real
// account and in the real places, starts it as its unit says, attacks it as the
// person whose agents it watches (attack 2), and takes it out again.
func TestInstallSystem(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can install for the system")
	}
	needtest.Programs(t, "unshare", "setpriv", "useradd", "systemd-socket-activate", "systemd-analyze")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	must(t, l.Close())
	layers := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", installScript)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=/root", "LAYERS=" + layers, "LISTEN=" + address, "GATEHOUSE=" + gatetest.Binary(t)}
	text, err := cmd.CombinedOutput()
	out := string(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"stat /usr/local/bin/gatehouse root root 755", "stat /usr/local/bin/gatehouse-hook root root 755", "stat /usr/local/bin/gatehouse-launch root root 755",
		"stat /etc/systemd/system/gatehouse.service root root 644", "stat /etc/systemd/system/gatehouse.socket root root 644",
		"stat /var/lib/gatehouse gatehouse gatehouse 700", "stat /var/lib/gatehouse/keys gatehouse gatehouse 700", "stat /var/lib/gatehouse/gatehouse.db gatehouse gatehouse 600",
		":/var/lib/gatehouse:/usr/sbin/nologin", "enrolled", "daemon gatehouse 1", "posture    held", "it reaches the gate itself", "hook exit 2", "the data stays",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	for _, bad := range []string{"SUCCEEDED", "verify ", "\nleft "} {
		if strings.Contains(out, bad) {
			t.Errorf("it says %q", bad)
		}
	}
	if n := strings.Count(out, ": failed"); n != 12 {
		t.Errorf("%d attacks were made", n)
	}
	if t.Failed() {
		t.Log(out)
	}
	if _, err := os.Stat(filepath.Join("/etc/systemd/system", "gatehouse.service")); err == nil {
		t.Error("it was installed outside its layers")
	}
}
