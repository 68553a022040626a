package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// Account is the user whom the system's gate runs as.
const Account = "gatehouse"

// bin is where the system's binaries go.
const bin = "/usr/local/bin"

// File is one file of an installation.
type File struct {
	Path string
	Mode os.FileMode
	// Text is its content; From is a file to copy instead.
	Text string
	From string
}

// Plan is what an installation consists of.
type Plan struct {
	Files []File
	// Dirs are directories that belong to the gate's user.
	Dirs []File
	// Before and After are commands around the writing of files.
	Before, After [][]string
	// Undo are commands that come before the files are removed.
	Undo [][]string
}

// Options say what is installed.
type Options struct {
	// Program is the gatehouse that is installed; what lies beside it
	// (gatehouse-hook, gatehouse-launch) comes along.
	Program string
	// Home is the home of the person whose agents the gate watches: what "~"
	// means in policies.
	Home string
	// Listen is the address of the console.
	Listen string
}

// beside lists the program and those of its companions that are there.
func (o *Options) beside() []string {
	files := []string{o.Program}
	for _, name := range []string{"gatehouse-hook", "gatehouse-launch"} {
		path := filepath.Join(filepath.Dir(o.Program), name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// System is the gate as a service of its own user, by systemd.
func System(o Options) *Plan {
	p := &Plan{
		Before: [][]string{{"useradd", "--system", "--user-group", "--home-dir", place.SystemHome, "--shell", "/usr/sbin/nologin", Account}},
		Dirs:   []File{{Path: place.SystemHome, Mode: 0o700}},
		After:  [][]string{{"systemctl", "daemon-reload"}, {"systemctl", "enable", "--now", "gatehouse.socket", "gatehouse.service"}},
		Undo:   [][]string{{"systemctl", "disable", "--now", "gatehouse.socket", "gatehouse.service"}},
	}
	for _, from := range o.beside() {
		p.Files = append(p.Files, File{Path: filepath.Join(bin, filepath.Base(from)), Mode: 0o755, From: from})
	}
	p.Files = append(p.Files,
		File{Path: "/etc/systemd/system/gatehouse.socket", Mode: 0o644, Text: systemSocket},
		File{Path: "/etc/systemd/system/gatehouse.service", Mode: 0o644, Text: fmt.Sprintf(systemService, o.Home, bin, place.SystemHome, place.SystemSocket, o.Listen, place.SystemHome)},
	)
	return p
}

const systemSocket = `[Unit]
Description=Socket of Gatehouse, the gate in front of AI agents

[Socket]
ListenStream=` + place.SystemSocket + `
SocketMode=0666
DirectoryMode=0755

[Install]
WantedBy=sockets.target
`

const systemService = `[Unit]
Description=Gatehouse, the gate in front of AI agents
Requires=gatehouse.socket
After=gatehouse.socket

[Service]
User=` + Account + `
Group=` + Account + `
Environment=HOME=%s
ExecStart=%s/gatehouse up --data %s --socket %s --listen %s
Restart=always
RestartSec=1
UMask=0077
# It sees what agents would touch, and writes what is its own.
AmbientCapabilities=CAP_DAC_READ_SEARCH CAP_SYS_PTRACE
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_SYS_PTRACE
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=%s
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes

[Install]
WantedBy=multi-user.target
`

// User is the gate as a service of one person, by systemd or launchd.
func User(o Options, goos, home, data string) *Plan {
	if goos == "darwin" {
		path := filepath.Join(home, "Library", "LaunchAgents", "dev.gatehouse.plist")
		return &Plan{
			Files: []File{{Path: path, Mode: 0o644, Text: fmt.Sprintf(agentPlist, escape(o.Program), escape(data), escape(o.Listen), escape(data))}},
			After: [][]string{{"launchctl", "load", "-w", path}},
			Undo:  [][]string{{"launchctl", "unload", "-w", path}},
		}
	}
	return &Plan{
		Files: []File{{
			Path: filepath.Join(home, ".config", "systemd", "user", "gatehouse.service"), Mode: 0o644,
			Text: fmt.Sprintf(userService, unitQuote(o.Program), unitQuote(data), o.Listen),
		}},
		After: [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", "gatehouse.service"}},
		Undo:  [][]string{{"systemctl", "--user", "disable", "--now", "gatehouse.service"}},
	}
}

const userService = `[Unit]
Description=Gatehouse, the gate in front of AI agents

[Service]
ExecStart=%s up --data %s --listen %s
Restart=on-failure
RestartSec=1
UMask=0077

[Install]
WantedBy=default.target
`

const agentPlist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>dev.gatehouse</string>
	<key>ProgramArguments</key>
	<array><string>%s</string><string>up</string><string>--data</string><string>%s</string><string>--listen</string><string>%s</string></array>
	<key>RunAtLoad</key><true/>
	<key>KeepAlive</key><true/>
	<key>StandardErrorPath</key><string>%s/gatehouse.log</string>
</dict>
</plist>
`

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// unitQuote writes a word of a unit's command line.
func unitQuote(s string) string {
	if !strings.ContainsAny(s, " \t\"'\\%$") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(s) + `"`
}

// Target is where and how a plan is carried out.
type Target struct {
	// Root is put in front of every path; with one no command is run and no
	// owner changed, because the files are for another machine.
	Root string
	// Run runs a command; nil runs none.
	Run func(args ...string) error
	// Chown gives a directory to the gate's user.
	Chown func(path string) error
	// Log says what was done.
	Log io.Writer
}

// Apply carries a plan out.
func (p *Plan) Apply(t Target) error {
	if err := t.commands(p.Before); err != nil {
		return err
	}
	for _, d := range p.Dirs {
		path := t.path(d.Path)
		if err := errors.Join(os.MkdirAll(path, d.Mode), os.Chmod(path, d.Mode)); err != nil {
			return err
		}
		if t.Root == "" && t.Chown != nil {
			if err := t.Chown(path); err != nil {
				return err
			}
		}
		fmt.Fprintln(t.Log, "made ", path)
	}
	for _, f := range p.Files {
		if err := t.write(f); err != nil {
			return err
		}
		fmt.Fprintln(t.Log, "wrote", t.path(f.Path))
	}
	return t.commands(p.After)
}

// Remove takes an installation out again. The gate's data stays: what it holds
// is the record of what happened.
func (p *Plan) Remove(t Target) error {
	if err := t.commands(p.Undo); err != nil {
		fmt.Fprintln(t.Log, "note ", err) // it may not be running
	}
	for _, f := range p.Files {
		switch err := os.Remove(t.path(f.Path)); {
		case err == nil:
			fmt.Fprintln(t.Log, "removed", t.path(f.Path))
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	return nil
}

func (t *Target) path(path string) string { return filepath.Join(t.Root, path) }

func (t *Target) commands(list [][]string) error {
	if t.Root != "" || t.Run == nil {
		return nil
	}
	for _, args := range list {
		if err := t.Run(args...); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// write writes one file beside its place and moves it there: a program that
// runs cannot be written over.
func (t *Target) write(f File) error {
	path := t.path(f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text := []byte(f.Text)
	if f.From != "" {
		var err error
		if text, err = os.ReadFile(f.From); err != nil {
			return err
		}
	}
	next := path + ".new"
	if err := errors.Join(os.WriteFile(next, text, f.Mode), os.Chmod(next, f.Mode)); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// Command runs a command for an installation. That the account is there
// already is no failure.
func Command(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	var exit *exec.ExitError
	const exists = 9 // useradd: the name is taken
	if args[0] == "useradd" && errors.As(err, &exit) && exit.ExitCode() == exists {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
