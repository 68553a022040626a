package policy

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// position is where a key or a value stands; both count from 1.
type position struct{ line, column int }

// positions knows where every key of a document stands, by its path.
type positions map[string]position

// join makes a path of keys and list indexes. A key that holds the separator
// could at worst be shown with another key's line.
func join(path string, parts ...string) string {
	for _, p := range parts {
		if path != "" {
			path += "\x1f"
		}
		path += p
	}
	return path
}

// at returns where a path stands, or the nearest thing around it that is
// written down.
func (p positions) at(path string) position {
	for path != "" {
		if pos, ok := p[path]; ok {
			return pos
		}
		i := strings.LastIndexByte(path, '\x1f')
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return position{}
}

// indexer walks a document's expressions and notes where each key stands.
type indexer struct {
	out    positions
	parser *unstable.Parser
	// starts are the offsets at which lines start: asking the parser for a
	// line makes it count from the top, every time.
	starts []int
	// lists counts the elements of each list of tables seen so far: a header
	// below one means its last element.
	lists map[string]int
}

// errIndex says that a document which was read could not be walked again. It
// is a mistake of the gate, and refuses the file.
var errIndex = errors.New("the positions in the file could not be told")

// indexPositions notes where each key of a valid document stands.
func indexPositions(data []byte) (positions, error) {
	ix := indexer{out: make(positions), parser: new(unstable.Parser), starts: []int{0}, lists: make(map[string]int)}
	for i, b := range data {
		if b == '\n' {
			ix.starts = append(ix.starts, i+1)
		}
	}
	ix.parser.Reset(data)
	table := ""
	for ix.parser.NextExpression() {
		n := ix.parser.Expression()
		switch n.Kind {
		case unstable.Table:
			table, _ = ix.header(n)
		case unstable.ArrayTable:
			name, last := ix.header(n)
			table = join(name, strconv.Itoa(ix.lists[name]))
			ix.lists[name]++
			ix.note(table, last)
		case unstable.KeyValue:
			ix.keyValue(table, n)
		}
	}
	if ix.parser.Error() != nil {
		return nil, errIndex
	}
	return ix.out, nil
}

// header returns the path of a table's name, going through the last element
// of any list of tables on the way, and the last part of the name.
func (ix *indexer) header(n *unstable.Node) (path string, last *unstable.Node) {
	for it := n.Key(); it.Next(); {
		if count := ix.lists[path]; count > 0 {
			path = join(path, strconv.Itoa(count-1))
		}
		last = it.Node()
		path = join(path, string(last.Data))
		ix.note(path, last)
	}
	return path, last
}

func (ix *indexer) keyValue(table string, n *unstable.Node) {
	path := table
	for it := n.Key(); it.Next(); {
		path = join(path, string(it.Node().Data))
		ix.note(path, it.Node())
	}
	ix.value(path, n.Value())
}

func (ix *indexer) value(path string, n *unstable.Node) {
	switch n.Kind {
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			ix.keyValue(path, it.Node())
		}
	case unstable.Array:
		i := 0
		for it := n.Children(); it.Next(); {
			elem := join(path, strconv.Itoa(i))
			if it.Node().Raw.Length > 0 {
				ix.note(elem, it.Node())
			}
			ix.value(elem, it.Node())
			i++
		}
	}
}

// note keeps the first place of a path: a table opened twice is refused by
// the parser, and a dotted key only passes through.
func (ix *indexer) note(path string, n *unstable.Node) {
	if _, ok := ix.out[path]; ok {
		return
	}
	offset := int(n.Raw.Offset)
	line, found := slices.BinarySearch(ix.starts, offset)
	if !found {
		line--
	}
	ix.out[path] = position{line: line + 1, column: offset - ix.starts[line] + 1}
}
