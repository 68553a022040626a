package content

// An automaton finds all keywords in one pass (Aho–Corasick as a full transition table). ASCII
// letters are folded by giving both cases one symbol, so a step is two loads. Letters come first in
// a row: what ordinary text touches of it is then one cache line.
type automaton struct {
	symbol  [256]uint8
	shift   uint     // log2 of the row length
	next    []uint16 // state<<shift | symbol → state
	quiet   uint16   // states below it report nothing
	outs    [][]hit  // of the states from quiet on
	longest int      // keyword, in bytes
}

// A hit names a keyword: its length and the rule it belongs to.
type hit struct {
	rule uint16
	size uint16
}

// found is a place where keywords end, with the index of what ends there.
type found struct {
	end int32
	out uint16
}

type keyword struct {
	text string
	rule int
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func newAutomaton(words []keyword) *automaton {
	a := &automaton{}
	symbols := a.alphabet(words)
	for 1<<a.shift < symbols {
		a.shift++
	}
	row := 1 << a.shift
	t := trie{children: make([]int, row), row: row, outs: [][]hit{nil}}
	for _, w := range words {
		at := 0
		for i := 0; i < len(w.text); i++ {
			at = t.child(at, int(a.symbol[lowerByte(w.text[i])]))
		}
		t.outs[at] = append(t.outs[at], hit{uint16(w.rule), uint16(len(w.text))})
	}
	t.link()
	a.number(&t)
	return a
}

// alphabet gives every byte that occurs in a keyword a symbol, letters first; 0 is all others.
func (a *automaton) alphabet(words []keyword) int {
	n := 1
	give := func(c byte) {
		if a.symbol[c] == 0 {
			a.symbol[c] = uint8(n)
			n++
		}
	}
	for c := byte('a'); c <= 'z'; c++ {
		give(c)
	}
	for _, w := range words {
		a.longest = max(a.longest, len(w.text))
		for i := 0; i < len(w.text); i++ {
			give(lowerByte(w.text[i]))
		}
	}
	for c := 'A'; c <= 'Z'; c++ {
		a.symbol[c] = a.symbol[lowerByte(byte(c))]
	}
	return n
}

// A trie of states; children has row entries per state, 0 meaning none.
type trie struct {
	children []int
	row      int
	outs     [][]hit
}

func (t *trie) child(at, sym int) int {
	if c := t.children[at*t.row+sym]; c != 0 {
		return c
	}
	c := len(t.outs)
	t.children[at*t.row+sym] = c
	t.children = append(t.children, make([]int, t.row)...)
	t.outs = append(t.outs, nil)
	return c
}

// link turns the trie into a transition table: a missing child becomes that of the longest proper
// suffix, and what a suffix reports is reported too.
func (t *trie) link() {
	fail := make([]int, len(t.outs))
	var queue []int
	for sym := range t.row {
		if c := t.children[sym]; c != 0 {
			queue = append(queue, c)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		t.outs[at] = append(t.outs[at], t.outs[fail[at]]...)
		for sym := range t.row {
			up := t.children[fail[at]*t.row+sym]
			if c := t.children[at*t.row+sym]; c != 0 {
				fail[c] = up
				queue = append(queue, c)
			} else {
				t.children[at*t.row+sym] = up
			}
		}
	}
}

// number lays the table out with the reporting states last, so that one comparison tells them.
func (a *automaton) number(t *trie) {
	ids := make([]uint16, len(t.outs))
	n := uint16(0)
	for pass := range 2 {
		for s, out := range t.outs {
			if (len(out) > 0) == (pass == 1) {
				ids[s] = n
				n++
				if pass == 1 {
					a.outs = append(a.outs, out)
				}
			}
		}
		if pass == 0 {
			a.quiet = n
		}
	}
	a.next = make([]uint16, len(t.children))
	for s := range t.outs {
		for sym := range t.row {
			a.next[int(ids[s])<<a.shift|sym] = ids[t.children[s*t.row+sym]]
		}
	}
}

// lanes are walked side by side: a step waits for the one before it, but not for another lane's.
const lanes = 4

// minLanes is the shortest text worth splitting.
const minLanes = 1 << 10

// laneBufs hold what each lane found.
type laneBufs [lanes][]found

// run returns every place where a keyword ends, in order, in a buffer of bufs. Each lane but the
// first starts early enough to be in the right state when its part begins.
func (a *automaton) run(text string, bufs *laneBufs) []found {
	for k := range bufs {
		bufs[k] = bufs[k][:0]
	}
	part := len(text) / lanes
	if len(text) < minLanes || part <= a.longest {
		a.walk(text, 0, len(text), 0, &bufs[0])
		return bufs[0]
	}
	var states [lanes]uint16
	for k := 1; k < lanes; k++ {
		states[k] = a.walk(text, k*part-a.longest, k*part, 0, nil)
	}
	a.together(text, part, &states, bufs)
	a.walk(text, lanes*part, len(text), states[lanes-1], &bufs[lanes-1])
	for k := 1; k < lanes; k++ {
		bufs[0] = append(bufs[0], bufs[k]...)
	}
	return bufs[0]
}

// walk goes over text[from:to] from a state and returns the last one.
func (a *automaton) walk(text string, from, to int, state uint16, into *[]found) uint16 {
	next, shift, quiet := a.next, a.shift, a.quiet
	for i := from; i < to; i++ {
		state = next[uint(state)<<shift|uint(a.symbol[text[i]])]
		if state >= quiet && into != nil {
			*into = append(*into, found{int32(i + 1), state - quiet})
		}
	}
	return state
}

// finds reports whether any keyword occurs in text.
func (a *automaton) finds(text string) bool {
	state := uint16(0)
	for i := 0; i < len(text); i++ {
		if state = a.next[uint(state)<<a.shift|uint(a.symbol[text[i]])]; state >= a.quiet {
			return true
		}
	}
	return false
}

// together walks all lanes over their parts of text.
func (a *automaton) together(text string, part int, states *[lanes]uint16, bufs *laneBufs) {
	next, shift, quiet := a.next, a.shift, a.quiet
	t0, t1, t2, t3 := text[:part], text[part:2*part], text[2*part:3*part], text[3*part:4*part]
	s0, s1, s2, s3 := states[0], states[1], states[2], states[3]
	for i := 0; i < len(t0) && i < len(t1) && i < len(t2) && i < len(t3); i++ {
		s0 = next[uint(s0)<<shift|uint(a.symbol[t0[i]])]
		s1 = next[uint(s1)<<shift|uint(a.symbol[t1[i]])]
		s2 = next[uint(s2)<<shift|uint(a.symbol[t2[i]])]
		s3 = next[uint(s3)<<shift|uint(a.symbol[t3[i]])]
		if s0 >= quiet {
			bufs[0] = append(bufs[0], found{int32(i + 1), s0 - quiet})
		}
		if s1 >= quiet {
			bufs[1] = append(bufs[1], found{int32(part + i + 1), s1 - quiet})
		}
		if s2 >= quiet {
			bufs[2] = append(bufs[2], found{int32(2*part + i + 1), s2 - quiet})
		}
		if s3 >= quiet {
			bufs[3] = append(bufs[3], found{int32(3*part + i + 1), s3 - quiet})
		}
	}
	*states = [lanes]uint16{s0, s1, s2, s3}
}
