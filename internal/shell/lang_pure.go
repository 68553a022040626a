package shell

import (
	"slices"
	"strings"
)

// A piece of inline code is proved to do nothing but read and compute by its
// tokens alone: if every name in it is on a list, every attribute is, and
// nothing in it can make a name or an attribute out of a string, then no way of
// putting the tokens together does harm. What the lists do not have is refused.

// pureLanguage is what is known to be harmless in a language.
type pureLanguage struct {
	names, attrs, operators string
	nameSet, attrSet        map[string]bool
	// locals says that names which the code assigns may be used as well.
	locals bool
}

// Python: item access is not attribute access, so brackets are harmless.
var purePython = newPure(pureLanguage{
	names: "for in if else elif not and or is None True False import from as while break continue pass try except finally with lambda " +
		"print len sum min max abs round sorted reversed enumerate range zip map filter any all int float str bool list dict set tuple bytes " +
		"repr ord chr hex oct bin divmod pow isinstance type iter next frozenset complex ascii hash " +
		"Exception KeyError ValueError TypeError IndexError AttributeError StopIteration ZeroDivisionError",
	attrs: "load loads dumps JSONDecodeError stdin argv version version_info maxsize platform byteorder " +
		"findall search match sub split compile finditer fullmatch group groups groupdict start end span escape IGNORECASE MULTILINE DOTALL " +
		"sqrt floor ceil pi e log log2 log10 exp sin cos tan atan atan2 hypot gcd lcm factorial comb perm isclose fsum prod inf nan isnan trunc radians degrees " +
		"Counter defaultdict OrderedDict deque namedtuple most_common elements total chain from_iterable groupby islice product permutations combinations accumulate takewhile dropwhile " +
		"datetime date timedelta timezone utc now today fromtimestamp utcfromtimestamp strftime strptime isoformat fromisoformat timestamp total_seconds year month day hour minute second days seconds weekday " +
		"b64encode b64decode urlsafe_b64encode urlsafe_b64decode sha1 sha256 sha512 md5 hexdigest digest hexlify unhexlify crc32 " +
		"ascii_letters ascii_lowercase ascii_uppercase digits punctuation dedent indent wrap fill shorten pprint pformat mean median stdev variance mode " +
		"reader DictReader quote unquote urlparse urlencode parse_qs parse_qsl netloc hostname scheme query " +
		"read readline readlines splitlines strip lstrip rstrip lower upper title capitalize replace join startswith endswith find rfind index count get items keys values " +
		"append extend sort add insert encode decode isdigit isalpha isalnum isspace isupper islower zfill ljust rjust center partition rpartition rsplit expandtabs swapcase casefold " +
		"copy union intersection difference issubset issuperset bit_length to_bytes from_bytes real imag itemgetter reduce perf_counter time",
	operators: "+-*/%()[]{},:=<>!|&^~.;",
	locals:    true,
})

// JavaScript makes attributes of strings in brackets, so there are none.
var pureNode = newPure(pureLanguage{
	names:     "console JSON Math Number String Boolean parseInt parseFloat isNaN process true false null undefined NaN Infinity typeof",
	attrs:     "log error parse stringify PI E abs ceil floor round max min sqrt pow sign trunc log2 log10 version versions node v8 platform arch length toFixed toString toUpperCase toLowerCase trim",
	operators: "+-*%(),;.?:!<>=&|", // a slash may begin a pattern with a quote in it
})

// Perl and Ruby do things with most signs; arithmetic is what is left.
var purePerl = newPure(pureLanguage{names: "print say puts p", operators: "+-*(),;."})

func newPure(l pureLanguage) *pureLanguage {
	l.nameSet, l.attrSet = make(map[string]bool), make(map[string]bool)
	for name := range strings.FieldsSeq(l.names) {
		l.nameSet[name] = true
	}
	for name := range strings.FieldsSeq(l.attrs) {
		l.attrSet[name] = true
	}
	return &l
}

// pureModules are the modules that only compute. Python takes them from the
// working directory if it finds them there; those built into the interpreter
// it does not look for.
var pureModules = map[string]bool{
	"sys": true, "time": true, "json": false, "re": false, "math": false, "collections": false, "itertools": false, "functools": false,
	"datetime": false, "base64": false, "hashlib": false, "binascii": false, "zlib": false, "string": false, "textwrap": false, "pprint": false,
	"statistics": false, "csv": false, "urllib.parse": false, "operator": false,
}

// pythonBuiltins are names that code must not be taken to have made itself.
const pythonBuiltins = " aiter anext breakpoint callable classmethod compile copyright credits delattr dir eval exec execfile exit file format getattr globals " +
	"hasattr help id input issubclass license locals memoryview object open property quit raw_input reload setattr slice staticmethod super vars unichr " +
	"unicode apply buffer cmp coerce intern long reduce xrange basestring bytearray "

// pureCode proves that inline code reads and computes and does nothing else,
// and adds what it reads. If it does not prove it, it adds nothing.
func (a *analyzer) pureCode(language string, w *word) bool {
	if !a.plainCode || !w.known || w.rare != nil || len(w.text) > 8<<10 || a.cur < 0 {
		return false
	}
	program := a.out.Commands[a.cur].Program
	switch {
	case language == "python" && isPython(program):
		c := &pureCode{lang: purePython, text: w.text, modules: a.pythonModules()}
		if !c.check() {
			return false
		}
		for _, path := range c.reads {
			f := word{text: path, known: true, span: w.span, at: -1}
			a.readPath(&f, false)
		}
	case language == "node" && (program == "node" || program == "nodejs"):
		return (&pureCode{lang: pureNode, text: w.text}).check()
	case language == "perl" && program == "perl":
		return pureFilter(w.text) || (&pureCode{lang: purePerl, text: w.text}).check()
	case language == "ruby" && program == "ruby":
		return (&pureCode{lang: purePerl, text: w.text}).check()
	default:
		return false
	}
	return true
}

// plainly says whether an interpreter is told nothing but its code: options can
// load modules, and files that Perl and Ruby are given can be commands.
func plainly(name string, ps *parsed) bool {
	allowed, code := "-c -I -P -B -E -s -S -u -q -b -O -OO", "python"
	switch name {
	case "node":
		allowed, code = "-e -p --eval --print", "node"
	case "perl":
		allowed, code = "-e -E -n -p -l -a -w", name
		if !perlFiles(ps.operands()) {
			return false
		}
	case "ruby":
		allowed, code = "-e -E", name
		if len(ps.operands()) > 0 {
			return false
		}
	}
	if name != code {
		return false
	}
	for _, h := range ps.hits() {
		if !slices.Contains(strings.Fields(allowed), h.opt.Name) {
			return false
		}
	}
	return true
}

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

// pureCode checks one piece of code.
type pureCode struct {
	lang    *pureLanguage
	text    string
	modules bool // modules may be imported

	tokens []token
	made   map[string]bool // names that the code assigns or imports
	reads  []string
}

type token struct {
	kind byte // n name, # number, s string, o operator, l end of line
	text string
}

func (c *pureCode) check() bool {
	c.made = make(map[string]bool)
	return c.lex() && (!c.lang.locals || c.imports() && c.targets()) && c.names()
}

// lex cuts the text into tokens. What it does not know it refuses, and first of
// all what ends a line for some and not for others.
func (c *pureCode) lex() bool {
	if strings.ContainsAny(c.text, "\r\f\v\x00\x1a") {
		return false
	}
	for i := 0; i < len(c.text); {
		b := c.text[i]
		switch {
		case b == '\n':
			c.tokens = append(c.tokens, token{'l', "\n"})
			i++
		case b == ' ' || b == '\t':
			i++
		case b == '#' && c.lang.locals:
			start := i
			for i < len(c.text) && c.text[i] != '\n' {
				i++
			}
			if strings.Contains(c.text[start:i], "coding") {
				return false // it may say that the text means something else
			}
		case isNameStart(b):
			start := i
			for i < len(c.text) && (isNameStart(c.text[i]) || isDigit(c.text[i])) {
				i++
			}
			name := c.text[start:i]
			if i < len(c.text) && (c.text[i] == '\'' || c.text[i] == '"') {
				n, ok := c.str(i, strings.ToLower(name))
				if !ok {
					return false
				}
				i = n
				continue
			}
			c.tokens = append(c.tokens, token{'n', name})
		case isDigit(b):
			start := i
			for i < len(c.text) && (isDigit(c.text[i]) || isNameStart(c.text[i]) || c.text[i] == '.') {
				i++
			}
			c.tokens = append(c.tokens, token{'#', c.text[start:i]})
		case b == '\'' || b == '"':
			n, ok := c.str(i, "")
			if !ok {
				return false
			}
			i = n
		case strings.IndexByte(c.lang.operators, b) >= 0:
			c.tokens = append(c.tokens, token{'o', c.text[i : i+1]})
			i++
		default:
			return false
		}
	}
	return true
}

func isNameStart(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// str reads a string that begins at i with a quote, and returns where it
// ends. The expressions in one of Python's formatted strings are code.
func (c *pureCode) str(i int, prefix string) (end int, ok bool) {
	quote := c.text[i : i+1]
	if c.lang.locals && strings.HasPrefix(c.text[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	start := i + len(quote)
	for i = start; !strings.HasPrefix(c.text[i:], quote); i++ {
		if i >= len(c.text) || len(quote) == 1 && c.text[i] == '\n' {
			return 0, false
		}
		if c.text[i] == '\\' {
			if i++; i >= len(c.text) {
				return 0, false
			}
		}
	}
	value := c.text[start:i]
	end = i + len(quote)
	switch {
	case c.lang != purePython:
		// Perl and Ruby put values and code into strings.
		return end, prefix == "" && !strings.ContainsAny(value, "$@#`\\") && c.push('s', value)
	case prefix == "" || prefix == "r" || prefix == "b" || prefix == "u" || prefix == "rb" || prefix == "br":
		if prefix != "" || strings.Contains(value, "\\") {
			value = "\x00" + value // its value is not its text
		}
		return end, c.push('s', value)
	case prefix == "f" || prefix == "rf" || prefix == "fr":
		return end, c.formatted(value)
	}
	return 0, false
}

func (c *pureCode) push(kind byte, text string) bool {
	c.tokens = append(c.tokens, token{kind, text})
	return true
}

// formatted takes the expressions of a formatted string as code between
// brackets.
func (c *pureCode) formatted(value string) bool {
	c.push('s', "\x00")
	for {
		open := strings.IndexAny(value, "{}")
		if open < 0 {
			return true
		}
		if open+1 < len(value) && value[open+1] == value[open] {
			value = value[open+2:] // a doubled one stands for itself
			continue
		}
		if value[open] == '}' {
			return false
		}
		length := strings.IndexAny(value[open+1:], "{}")
		if length < 0 || value[open+1+length] != '}' {
			return false // a bracket inside: left to others
		}
		expr := value[open+1 : open+1+length]
		value = value[open+length+2:]
		if spec := strings.LastIndexByte(expr, ':'); spec >= 0 && strings.Trim(expr[spec+1:], "<>=^+- 0123456789.,_bcdeEfFgGnosxX%") == "" {
			expr = expr[:spec]
		}
		expr = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(expr, "!r"), "!s"), "!a")
		if strings.ContainsAny(expr, "\\#") {
			return false
		}
		inner := &pureCode{lang: c.lang, text: expr}
		if !inner.lex() {
			return false
		}
		c.push('o', "(")
		c.tokens = append(c.tokens, inner.tokens...)
		c.push('o', ")")
	}
}

func (c *pureCode) is(i int, text string) bool {
	return i >= 0 && i < len(c.tokens) && c.tokens[i].kind != 's' && c.tokens[i].text == text
}

// imports checks the import statements and takes them out.
func (c *pureCode) imports() bool {
	var rest []token
	for i := 0; i < len(c.tokens); i++ {
		starts := i == 0 || c.tokens[i-1].kind == 'l' || c.is(i-1, ";")
		if c.tokens[i].kind != 'n' || c.tokens[i].text != "import" && c.tokens[i].text != "from" {
			rest = append(rest, c.tokens[i])
			continue
		}
		if !starts {
			return false
		}
		end := i
		for end < len(c.tokens) && c.tokens[end].kind != 'l' && !c.is(end, ";") {
			end++
		}
		if !c.importStatement(c.tokens[i:end]) {
			return false
		}
		i = end - 1
	}
	c.tokens = rest
	return true
}

// importStatement reads import a, b.c as d and from a.b import c, d.
func (c *pureCode) importStatement(ts []token) bool {
	var words []string
	for _, t := range ts {
		if t.kind != 'n' && t.text != "." && t.text != "," {
			return false
		}
		words = append(words, t.text)
	}
	text := strings.ReplaceAll(strings.Join(words, " "), " . ", ".")
	from := ""
	if rest, ok := strings.CutPrefix(text, "from "); ok {
		if from, text, ok = strings.Cut(rest, " import "); !ok || !c.module(from) {
			return false
		}
	} else if text, ok = strings.CutPrefix(text, "import "); !ok {
		return false
	}
	for part := range strings.SplitSeq(text, ",") {
		name, as, renamed := strings.Cut(strings.TrimSpace(part), " as ")
		if from == "" && !c.module(name) || from != "" && !c.lang.attrSet[name] {
			return false
		}
		if !renamed {
			as, _, _ = strings.Cut(name, ".")
		}
		if as == "" || strings.ContainsAny(as, " .") || c.lang.nameSet[as] || strings.Contains(pythonBuiltins, " "+as+" ") && from == "" {
			return false
		}
		c.made[as] = true
	}
	return true
}

func (c *pureCode) module(name string) bool {
	builtIn, known := pureModules[name]
	return known && (builtIn || c.modules)
}

// targets notes the names that the code gives values to.
func (c *pureCode) targets() bool {
	for i, t := range c.tokens {
		if t.kind != 'n' || c.lang.nameSet[t.text] {
			continue
		}
		assigned := c.is(i+1, "=") && !c.is(i+2, "=") && !c.is(i-1, ".") || c.is(i+1, ":") && c.is(i+2, "=") || c.is(i-1, "as")
		for j := i - 1; j >= 0 && !assigned; j-- {
			// for a, (b, c) in …; lambda x, y: …
			switch {
			case c.is(j, "for") || c.is(j, "lambda"):
				assigned = true
			case c.tokens[j].kind == 'n' && !c.lang.nameSet[c.tokens[j].text], c.is(j, ","), c.is(j, "("):
				continue
			}
			break
		}
		if assigned {
			if strings.Contains(pythonBuiltins, " "+t.text+" ") {
				return false
			}
			c.made[t.text] = true
		}
	}
	return true
}

// names checks every name and attribute. Code without any does nothing, and
// whoever runs it is after something else: what the interpreter loads.
func (c *pureCode) names() bool {
	if !slices.ContainsFunc(c.tokens, func(t token) bool { return t.kind == 'n' }) {
		return false
	}
	for i := 0; i < len(c.tokens); i++ {
		t := c.tokens[i]
		if t.kind != 'n' {
			continue
		}
		switch {
		case strings.Contains(t.text, "__"):
			return false
		case c.is(i-1, "."):
			if !c.lang.attrSet[t.text] && !c.standardOutput(i) {
				return false
			}
		case t.text == "open" && c.lang.locals:
			if !c.openRead(i) {
				return false
			}
		case c.lang.nameSet[t.text] || c.made[t.text]:
		case keywordArgs[t.text] && c.is(i+1, "=") && !c.is(i+2, "="):
		default:
			return false
		}
	}
	return true
}

// keywordArgs are names of arguments that are harmless wherever they stand.
var keywordArgs = map[string]bool{"sep": true, "end": true, "indent": true, "sort_keys": true, "ensure_ascii": true, "key": true, "reverse": true, "default": true, "flush": true}

// standardOutput recognises sys.stdout.write and sys.stderr.write.
func (c *pureCode) standardOutput(i int) bool {
	switch c.tokens[i].text {
	case "stdout", "stderr":
		return c.is(i-2, "sys") && (c.is(i+1, ".") && c.is(i+2, "write") || c.is(i+1, ".") && c.is(i+2, "flush"))
	case "write", "flush":
		return (c.is(i-2, "stdout") || c.is(i-2, "stderr")) && c.is(i-4, "sys")
	}
	return false
}

// openRead recognises open("a file") and open("a file", "r"), which read.
func (c *pureCode) openRead(i int) bool {
	if !c.is(i+1, "(") || i+3 >= len(c.tokens) || c.tokens[i+2].kind != 's' {
		return false
	}
	path := c.tokens[i+2].text
	at := i + 3
	if c.is(at, ",") && at+1 < len(c.tokens) && c.tokens[at+1].kind == 's' {
		if mode := c.tokens[at+1].text; mode != "r" && mode != "rb" && mode != "rt" {
			return false
		}
		at += 2
	}
	if !c.is(at, ")") || path == "" || strings.ContainsRune(path, 0) {
		return false
	}
	c.reads = append(c.reads, path)
	return true
}
