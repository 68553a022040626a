package vet

import (
	"go/types"
	"strings"
)

// effects are what functions of the standard library do, by name: "F" for a
// function, "T.F" for a method, "T.*" for every method of a type. A package
// whose line has a "*" does that in everything not named otherwise. Packages
// that are not listed do none of it.
var effects = map[string]map[string]caps{
	"os": {
		"*": set(opaque), // a function that is newer than this table
		"Create CreateTemp Mkdir MkdirAll MkdirTemp Remove RemoveAll Rename Chmod Chown Lchown Chtimes Link Symlink Truncate WriteFile CopyFS": set(writes),
		"File.Write File.WriteAt File.WriteString File.ReadFrom File.Truncate File.Chmod File.Chown":                                           set(writes),
		"Root.Create Root.Mkdir Root.MkdirAll Root.Remove Root.RemoveAll Root.Rename Root.Chmod Root.Chown Root.Lchown Root.Chtimes":           set(writes),
		"Root.Link Root.Symlink Root.WriteFile":                                                               set(writes),
		"Open ReadFile ReadDir Readlink Stat Lstat DirFS OpenRoot OpenInRoot Chdir":                           set(reads),
		"File.Read File.ReadAt File.ReadDir File.Readdir File.Readdirnames File.WriteTo File.Stat File.Chdir": set(reads),
		"Root.Open Root.ReadFile Root.Stat Root.Lstat Root.Readlink Root.FS Root.OpenRoot":                    set(reads),
		"OpenFile Root.OpenFile": set(reads, writes),
		"Getenv LookupEnv Environ Setenv Unsetenv Clearenv ExpandEnv TempDir UserHomeDir UserCacheDir UserConfigDir": set(environment),
		"StartProcess FindProcess Process.*": set(executes),
		"Args Exit Expand Executable Getegid Geteuid Getgid Getgroups Getpagesize Getpid Getppid Getuid Getwd":     0,
		"Hostname IsExist IsNotExist IsPathSeparator IsPermission IsTimeout NewFile NewSyscallError Pipe SameFile": 0,
		"File.Close File.Fd File.Name File.Seek File.SetDeadline File.SetReadDeadline File.SetWriteDeadline":       0,
		"File.Sync File.SyscallConn Root.Close Root.Name FileMode.* PathError.* LinkError.* SyscallError.*":        0,
		"ProcessState.* FileInfo.* DirEntry.* Signal.* ProcAttr.*":                                                 0,
	},
	"os/exec":       {"*": set(executes), "Error.* ExitError.*": 0},
	"os/user":       {"*": set(reads), "UnknownUserError.* UnknownUserIdError.* UnknownGroupError.* UnknownGroupIdError.*": 0},
	"path/filepath": {"Walk WalkDir Glob EvalSymlinks": set(reads)},
	"io/fs":         {"ReadFile ReadDir Stat Glob WalkDir Sub Lstat ReadLink": set(reads), "FS.* File.* ReadDirFS.* ReadFileFS.* StatFS.* GlobFS.* SubFS.* ReadDirFile.* ReadLinkFS.*": set(reads)},
	"io/ioutil":     {"ReadFile ReadDir": set(reads), "WriteFile TempFile TempDir": set(writes)},
	"net": {
		"*": 0,
		"Dial DialTimeout DialIP DialTCP DialUDP DialUnix Listen ListenIP ListenTCP ListenUDP ListenUnix ListenUnixgram":                     set(network),
		"ListenMulticastUDP ListenPacket FileConn FileListener FilePacketConn Interfaces InterfaceAddrs InterfaceByName":                     set(network),
		"LookupAddr LookupCNAME LookupHost LookupIP LookupMX LookupNS LookupPort LookupSRV LookupTXT InterfaceByIndex":                       set(network),
		"ResolveIPAddr ResolveTCPAddr ResolveUDPAddr ResolveUnixAddr Dialer.* Resolver.* ListenConfig.*":                                     set(network),
		"Conn.Read Conn.Write TCPConn.* UDPConn.* IPConn.* UnixConn.* PacketConn.* Listener.Accept TCPListener.* UnixListener.* Interface.*": set(network),
	},
	"net/http": {
		"*": 0,
		"Get Head Post PostForm Client.* Transport.RoundTrip RoundTripper.* ListenAndServe ListenAndServeTLS Serve ServeTLS": set(network),
		"Server.ListenAndServe Server.ListenAndServeTLS Server.Serve Server.ServeTLS ReadResponse":                           set(network),
		"ProxyFromEnvironment": set(environment),
		"FileServer FileServerFS ServeFile ServeFileFS Dir.* FileSystem.* File.* NewFileTransport NewFileTransportFS": set(reads),
	},
	"net/http/httptest":   {"NewServer NewTLSServer NewUnstartedServer Server.*": set(network)},
	"net/http/httputil":   {"ReverseProxy.* NewSingleHostReverseProxy ClientConn.* ServerConn.*": set(network)},
	"net/http/cgi":        {"Handler.*": set(executes), "Serve Request": set(environment)},
	"net/http/fcgi":       {"Serve": set(network)},
	"net/rpc":             {"*": set(network)},
	"net/rpc/jsonrpc":     {"*": set(network)},
	"net/smtp":            {"*": set(network), "PlainAuth CRAMMD5Auth Auth.* ServerInfo.*": 0},
	"net/textproto":       {"Dial": set(network)},
	"crypto/tls":          {"Dial DialWithDialer Listen Dialer.* Conn.Read Conn.Write Conn.Handshake Conn.HandshakeContext": set(network), "LoadX509KeyPair": set(reads)},
	"crypto/x509":         {"SystemCertPool Certificate.Verify": set(reads)},
	"log/syslog":          {"*": set(network)},
	"database/sql":        {"Open OpenDB DB.* Conn.* Tx.* Stmt.*": set(network)},
	"database/sql/driver": {"Driver.* DriverContext.* Connector.* Conn.* Stmt.* Pinger.* Queryer.* Execer.*": set(network)},
	"archive/zip":         {"OpenReader": set(reads)},
	"debug/elf":           {"Open": set(reads)},
	"debug/macho":         {"Open OpenFat": set(reads)},
	"debug/pe":            {"Open": set(reads)},
	"debug/buildinfo":     {"ReadFile": set(reads)},
	"debug/plan9obj":      {"Open": set(reads)},
	"go/build":            {"*": set(reads)},
	"go/importer":         {"*": set(reads, executes)},
	"go/parser":           {"ParseFile ParseDir": set(reads)},
	"html/template":       {"ParseFiles ParseGlob ParseFS Template.ParseFiles Template.ParseGlob Template.ParseFS": set(reads)},
	"text/template":       {"ParseFiles ParseGlob ParseFS Template.ParseFiles Template.ParseGlob Template.ParseFS": set(reads)},
	"mime":                {"TypeByExtension ExtensionsByType AddExtensionType": set(reads)},
	"time":                {"LoadLocation": set(reads)},
	"runtime/coverage":    {"WriteMetaDir WriteCountersDir": set(writes)},
	"runtime/debug":       {"WriteHeapDump SetCrashOutput": set(writes)},
	"plugin":              {"*": set(opaque)},
	"reflect":             {"Value.Call Value.CallSlice Value.Method Value.MethodByName MakeFunc NewAt Value.UnsafePointer Value.UnsafeAddr": set(opaque)},
	"syscall": {
		"*":                                     set(opaque),
		"Exec ForkExec StartProcess Kill Wait4": set(executes),
		"Getenv Environ Setenv Unsetenv Clearenv":                                                          set(environment),
		"Getpid Getppid Getuid Geteuid Getgid Getegid Getpagesize Errno.* Signal.* Exit Gettimeofday Time": 0,
		"Open Creat": set(reads, writes),
		"Mkdir Rmdir Unlink Rename Chmod Chown Link Symlink Truncate Ftruncate Write Pwrite": set(writes),
		"Stat Lstat Fstat Readlink Read Pread ReadDirent Getwd Chdir":                        set(reads),
		"Socket Connect Bind Listen Accept Sendto Recvfrom":                                  set(network),
		"Conn.* RawConn.*": 0,
	},
}

// stdTable is effects with one entry per name.
type stdTable map[string]map[string]caps

func newStdTable() stdTable {
	t := stdTable{}
	for pkg, lines := range effects {
		t[pkg] = map[string]caps{}
		for names, c := range lines {
			for name := range strings.FieldsSeq(names) {
				t[pkg][name] = c
			}
		}
	}
	return t
}

// of returns what a function of the standard library does.
func (t stdTable) of(fn *types.Func) caps {
	lines := t[fn.Pkg().Path()]
	if lines == nil {
		return 0
	}
	name, recv := fn.Name(), receiver(fn)
	if recv != "" {
		if c, ok := lines[recv+"."+name]; ok {
			return c
		}
		if c, ok := lines[recv+".*"]; ok {
			return c
		}
	} else if c, ok := lines[name]; ok {
		return c
	}
	return lines["*"]
}

// receiver returns the name of the type a method belongs to.
func receiver(fn *types.Func) string {
	sig, ok := fn.Type().(*types.Signature)
	if !ok || sig.Recv() == nil {
		return ""
	}
	t := sig.Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// isStd reports whether a package is the standard library's.
func isStd(pkg *types.Package) bool {
	first, _, _ := strings.Cut(pkg.Path(), "/")
	return stdNames[first]
}

// stdNames are the first elements of the standard library's paths. A module
// may be called anything else, with or without a dot.
var stdNames = names("archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html " +
	"image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv strings structs sync syscall " +
	"testing text time unicode unique unsafe vendor weak")

func names(list string) map[string]bool {
	out := map[string]bool{}
	for n := range strings.FieldsSeq(list) {
		out[n] = true
	}
	return out
}
