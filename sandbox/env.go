package sandbox

import (
	"slices"
	"strings"
)

// defaultPass is what a command gets when its environment is unspecified.
var defaultPass = []string{"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"}

// startup are variables that make a loader, a shell or an interpreter run code
// or load files before the program itself does anything. They are withheld
// even when they are named, because a value that was harmless where it was
// set becomes somebody else's code where it is used.
var startup = map[string]bool{
	"BASH_ENV": true, "ENV": true, "ZDOTDIR": true, "SHELLOPTS": true, "BASHOPTS": true, "PROMPT_COMMAND": true,
	"PS0": true, "PS4": true, "CDPATH": true, "GLOBIGNORE": true, "IFS": true, "FPATH": true,
	"PYTHONSTARTUP": true, "PYTHONPATH": true, "PYTHONHOME": true, "PYTHONINSPECT": true, "PYTHONUSERBASE": true,
	"PYTHONBREAKPOINT": true, "PYTHONWARNINGS": true, "PYTHONEXECUTABLE": true,
	"PERL5OPT": true, "PERL5LIB": true, "PERLLIB": true, "PERL5DB": true,
	"RUBYOPT": true, "RUBYLIB": true, "NODE_OPTIONS": true, "NODE_PATH": true, "NODE_EXTRA_CA_CERTS": true,
	"NODE_REPL_EXTERNAL_MODULE": true, "ELECTRON_RUN_AS_NODE": true,
	"JAVA_TOOL_OPTIONS": true, "_JAVA_OPTIONS": true, "JDK_JAVA_OPTIONS": true, "CLASSPATH": true,
	"LUA_INIT": true, "LUA_PATH": true, "LUA_CPATH": true, "PHPRC": true, "PHP_INI_SCAN_DIR": true,
	"R_PROFILE": true, "R_PROFILE_USER": true, "R_ENVIRON": true, "DOTNET_STARTUP_HOOKS": true,
	"GIT_EXTERNAL_DIFF": true, "GIT_SSH": true, "GIT_SSH_COMMAND": true, "GIT_ASKPASS": true, "GIT_EDITOR": true,
	"GIT_PAGER": true, "GIT_PROXY_COMMAND": true, "GIT_EXEC_PATH": true, "GIT_TEMPLATE_DIR": true,
	"GIT_DIR": true, "GIT_WORK_TREE": true, "GIT_ATTR_SOURCE": true, "SSH_ASKPASS": true, "SSH_AUTH_SOCK": true,
	"DBUS_SESSION_BUS_ADDRESS": true, "XDG_RUNTIME_DIR": true, "DOCKER_HOST": true, "GPG_AGENT_INFO": true,
	"GCONV_PATH": true, "LOCPATH": true, "NLSPATH": true, "GLIBC_TUNABLES": true, "HOSTALIASES": true,
	"RES_OPTIONS": true, "LOCALDOMAIN": true, "RESOLV_HOST_CONF": true, "MALLOC_TRACE": true, "GETCONF_DIR": true,
	"LESSOPEN": true, "LESSCLOSE": true, "MANPAGER": true, "TERMCAP": true, "TERMINFO": true, "TERMINFO_DIRS": true,
	"GOFLAGS": true, "MAKEFLAGS": true, "MFLAGS": true, "GNUMAKEFLAGS": true,
	"GTK_MODULES": true, "GTK_PATH": true, "QT_PLUGIN_PATH": true, "GIO_MODULE_DIR": true, "OPENSSL_CONF": true,
	"OPENSSL_MODULES": true, "OPENSSL_ENGINES": true, "SSLKEYLOGFILE": true,
}

// startupPrefixes are families of such variables.
var startupPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG", "CORECLR_", "COR_", "GATEHOUSE_", "_RLD"}

// withheld reports whether a variable never enters a sandbox.
func withheld(name string) bool {
	if startup[name] {
		return true
	}
	return slices.ContainsFunc(startupPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// build returns the environment, sorted, and the names that were withheld
// although they were asked for.
func (e Env) build(host []string) (env, stripped []string) {
	vars := map[string]string{}
	take := func(k, v string) {
		if withheld(k) {
			stripped = append(stripped, k)
			return
		}
		vars[k] = v
	}
	pass := e.Pass
	if pass == nil {
		pass = defaultPass
	}
	for _, kv := range host {
		k, v, ok := strings.Cut(kv, "=")
		if ok && k != "" && (e.Inherit || slices.Contains(pass, k)) {
			take(k, v)
		}
	}
	for k, v := range e.Set {
		take(k, v)
	}
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	slices.Sort(stripped)
	return env, slices.Compact(stripped)
}

func lookupEnv(env []string, name string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

func setEnv(env []string, name, value string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}
