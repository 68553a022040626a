package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity is the user a run has. An ordinary user keeps its own; root becomes
// somebody else before anything of the command runs.
type identity struct {
	uid, gid int
	drop     bool // started as root
	fresh    bool // a user id nobody else has; declared roots are mapped to it
}

// freshBase starts a range of user ids that no distribution hands out. A
// fresh id shares nothing with any other user: no files, no signals, no count.
const freshBase = 0x70000000

// chooseIdentity takes the owner of what will be written, or of the working
// directory, when that is not root.
func chooseIdentity(p *plan) (identity, error) {
	if os.Geteuid() != 0 {
		return identity{uid: os.Getuid(), gid: os.Getgid()}, nil
	}
	path := p.dir
	for _, r := range p.roots {
		if r.write && !r.isNew {
			path = r.path
			break
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return identity{}, err
	}
	if st.Uid != 0 && st.Gid != 0 {
		return identity{uid: int(st.Uid), gid: int(st.Gid), drop: true}, nil
	}
	id, err := freshID()
	return identity{uid: id, gid: id, drop: true, fresh: true}, err
}

// RunsAs returns the user id that a command of this Spec has, inside and out.
func RunsAs(s Spec) (int, error) {
	p, err := newPlan(&s)
	if err != nil {
		return 0, err
	}
	defer removePlaceholders(p)
	id, err := chooseIdentity(p)
	return id.uid, err
}

// freshID is chosen once per process, so that the mapping below is made once.
var freshID = sync.OnceValues(func() (int, error) {
	var b [2]byte
	_, err := rand.Read(b[:])
	return freshBase + int(binary.LittleEndian.Uint16(b[:])), err
})

// credential drops to the identity at fork, supplementary groups included.
func (id identity) credential(attr *syscall.SysProcAttr) {
	if id.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid), Groups: []uint32{}}
	}
}

// stage is a place in a mount namespace of the calling thread's own, where
// declared roots are put for a back-end that runs as the dropped user and
// could not walk to them, nor write to root's files. On the way the owner
// root is mapped to that user: the command works on the files as if they
// were its own, and what it creates belongs to root on disk.
type stage struct {
	dir    string
	mapped bool
	n      int
	ns     *os.File
}

// stagePlaces are directories that exist on every system and that nobody
// declares; in the thread's own namespace they are covered.
var stagePlaces = []string{"/mnt", "/media", "/srv", "/opt"}

func newStage(p *plan, id identity) (*stage, error) {
	st := &stage{}
	for _, d := range stagePlaces {
		used := false
		for _, r := range p.roots {
			used = used || within(r.path, d) || within(d, r.path) && r.path != "/"
		}
		if fi, err := os.Stat(d); err == nil && fi.IsDir() && !used {
			st.dir = d
			break
		}
	}
	if st.dir == "" {
		return nil, errors.New("no directory left to stage in")
	}
	if id.fresh {
		ns, err := mappingNamespace()
		if err != nil {
			return nil, fmt.Errorf("user mapping: %w", err)
		}
		st.ns = ns
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, err
	}
	return st, unix.Mount("gatehouse", st.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m")
}

// place attaches a copy of the tree behind an open descriptor and returns
// where. A file system that cannot map owners is attached as it is: the
// command then has what the dropped user has.
func (st *stage) place(fd int, dir bool) (string, error) {
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return "", err
	}
	defer unix.Close(tree)
	if st.ns != nil {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(st.ns.Fd())}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err == nil {
			st.mapped = true
		}
	}
	at := filepath.Join(st.dir, strconv.Itoa(st.n))
	st.n++
	if dir {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return "", err
	}
	return at, unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mappingNamespace returns a user namespace that maps root's files to the
// fresh id and leaves everybody else's alone. It has no processes; only its
// map is used.
var mappingNamespace = sync.OnceValues(func() (*os.File, error) {
	uid, err := freshID()
	if err != nil {
		return nil, err
	}
	table := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: uid, Size: 1},
		{ContainerID: 1, HostID: 1, Size: freshBase - 1},
	}
	// The child stops at its first instruction and is killed there: all that is
	// wanted of it is the namespace, which the descriptor keeps alive.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	proc, err := os.StartProcess("/proc/self/exe", []string{"gatehouse-map"}, &os.ProcAttr{
		Dir: "/",
		Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: table, GidMappings: table, Ptrace: true, Pdeathsig: unix.SIGKILL,
		},
	})
	if err != nil {
		return nil, err
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", proc.Pid))
	_ = proc.Kill()
	var ws unix.WaitStatus
	for {
		// The first event is the stop at exec; the last one the death.
		_, werr := unix.Wait4(proc.Pid, &ws, unix.WALL, nil)
		if werr == unix.EINTR {
			continue
		}
		if werr != nil || ws.Exited() || ws.Signaled() {
			break
		}
	}
	_ = proc.Release()
	return ns, err
})

// openRoot opens a canonical path without following a single link: a
// directory swapped for a link since it was checked is refused here.
func openRoot(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
