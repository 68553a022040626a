package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-3ebc6b8a/gatehouse/internal/install"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
)

// installation is what install and uninstall share.
type installation struct {
	system bool
	root   string
	person string
	listen string
}

func (i *installation) flags(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.BoolVar(&i.system, "system", false, "as a service of its own user, which holds agents; needs the administrator")
	f.StringVar(&i.root, "root", "", "directory to put in front of every path, for images; nothing is started")
	f.StringVar(&i.person, "for", os.Getenv("SUDO_USER"), "with --system: the person whose agents it watches")
	f.StringVar(&i.listen, "listen", "127.0.0.1:7878", "address of the console and the API")
	return cmd
}

func newInstall(a *app) *cobra.Command {
	i := &installation{}
	return i.flags(&cobra.Command{
		Use:   "install",
		Short: "Make the gate a service: yours, or with --system one of its own user",
		Long: `Makes the gate a service that starts by itself. With --system it runs as a user of its
own, whose files, processes and socket an agent cannot touch: that is what turns advice
into a hold. Then enrol the first approver with sudo gatehouse approver add NAME, and
connect agents.`,
		Example: `  gatehouse install
  sudo gatehouse install --system --for ann
  gatehouse install --system --root ./image`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, target, err := i.plan(a, cmd)
			if err != nil {
				return err
			}
			return plan.Apply(target)
		},
	})
}

func newUninstall(a *app) *cobra.Command {
	i := &installation{}
	return i.flags(&cobra.Command{
		Use:   "uninstall",
		Short: "Remove the service; the gate's data and log stay",
		Example: `  gatehouse uninstall
  sudo gatehouse uninstall --system`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, target, err := i.plan(a, cmd)
			if err != nil {
				return err
			}
			return plan.Remove(target)
		},
	})
}

// plan makes the plan and says where to carry it out.
func (i *installation) plan(a *app, cmd *cobra.Command) (*install.Plan, install.Target, error) {
	target := install.Target{Root: i.root, Log: out(cmd), Run: install.Command, Chown: toAccount}
	if i.root != "" {
		var err error
		if target.Root, err = filepath.Abs(i.root); err != nil {
			return nil, target, err
		}
	} else if _, err := os.Stat("/run/systemd/system"); err != nil && runtime.GOOS == "linux" {
		// No service manager runs here: the files are written, and whoever
		// starts services here starts it.
		fmt.Fprintln(out(cmd), "note  systemd does not run here; nothing is started")
		target.Run = func(args ...string) error {
			if args[0] == "systemctl" {
				return nil
			}
			return install.Command(args...)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, target, err
	}
	if strings.Contains(exe, "go-build") {
		return nil, target, usageError{errors.New("this gatehouse was built by `go run` and will be gone: build it first (go build -o DIR ./cmd/gatehouse ./cmd/gatehouse-hook)")}
	}
	o := install.Options{Program: exe, Listen: i.listen}
	if i.system {
		if o.Home, err = i.home(); err != nil {
			return nil, target, err
		}
		return install.System(o), target, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, target, err
	}
	p, err := place.Find(a.home)
	if err != nil {
		return nil, target, err
	}
	return install.User(o, runtime.GOOS, home, p.Home), target, nil
}

// home is the home of the person whose agents the system's gate watches.
func (i *installation) home() (string, error) {
	if i.root == "" && os.Geteuid() != 0 {
		return "", usageError{errors.New("installing for the system needs the administrator: sudo gatehouse install --system")}
	}
	if i.person == "" {
		return "", usageError{errors.New("say whose agents it watches: --for NAME")}
	}
	u, err := user.Lookup(i.person)
	if err != nil {
		return "", usageError{err}
	}
	return u.HomeDir, nil
}

// toAccount gives a directory to the gate's user.
func toAccount(path string) error {
	u, err := user.Lookup(install.Account)
	if err != nil {
		return err
	}
	uid, errU := strconv.Atoi(u.Uid)
	gid, errG := strconv.Atoi(u.Gid)
	return errors.Join(errU, errG, os.Chown(path, uid, gid))
}
