package shell

import (
	"slices"
	"strings"
)

// isPython says whether a name is that of Python. None of the names on the
// list does harm in Python 2 either, where python may still lead.
func isPython(name string) bool {
	rest, ok := strings.CutPrefix(name, "python")
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// pythonModules says whether modules come from Python itself: if it was told
// not to look in the working directory, or there is nothing that it would take
// for one of its own.
//
// Where neither a world nor a directory is given the words alone are judged:
// Python's modules are what their names say, as programs are.
func (a *analyzer) pythonModules(others ...string) bool {
	if a.isolated {
		return true
	}
	if a.st.cwd.lost || a.remote > 0 {
		return false
	}
	if a.world == nil {
		return inside(a.st.cwd.rel) && a.st.cwd.abs == ""
	}
	if a.st.cwd.abs == "" {
		return false
	}
	names, known := a.world.Names(a.st.cwd.abs)
	if !known {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		stem, _, _ := strings.Cut(name, ".")
		return strings.Contains(pythonStandard, " "+stem+" ") || slices.Contains(others, stem)
	})
}

// pythonStandard are the modules of Python's library that others of it import: a
// file of such a name in the working directory takes its place.
const pythonStandard = " __future__ _abc _aix_support _ast _asyncio _bisect _blake2 _bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 " +
	"_codecs_jp _codecs_kr _codecs_tw _collections _collections_abc _compat_pickle _compression _contextvars _crypt _csv _ctypes " +
	"_curses _curses_panel _datetime _dbm _decimal _elementtree _frozen_importlib _frozen_importlib_external _functools _gdbm _hashlib " +
	"_heapq _imp _io _json _locale _lsprof _lzma _markupbase _md5 _msi _multibytecodec _multiprocessing _opcode _operator _osx_support " +
	"_overlapped _pickle _posixshmem _posixsubprocess _py_abc _pydecimal _pyio _queue _random _scproxy _sha1 _sha256 _sha3 _sha512 " +
	"_signal _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct _symtable _thread _threading_local " +
	"_tkinter _tokenize _tracemalloc _typing _uuid _warnings _weakref _weakrefset _winapi _zoneinfo abc aifc argparse array ast " +
	"asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs " +
	"codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses " +
	"dataclasses datetime dbm decimal difflib dis doctest email encodings enum errno faulthandler fcntl filecmp fileinput fnmatch " +
	"fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib " +
	"imghdr imp importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox mailcap marshal math " +
	"mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse " +
	"os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd " +
	"py_compile pyclbr pydoc pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors " +
	"shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat " +
	"statistics string stringprep struct subprocess sunau symtable sysconfig syslog tabnanny tarfile telnetlib tempfile termios " +
	"textwrap threading timeit token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest urllib uu uuid " +
	"warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo "
