package forward

import "strconv"

// answer is what the gate wants the agent to see.
type answer struct {
	exit           int
	stdout, stderr []byte
}

// badAnswer is why an answer cannot be given.
type badAnswer string

func (b badAnswer) Error() string { return "the gate's answer makes no sense: " + string(b) }

// parseAnswer reads the gate's HTTP answer. The header Gatehouse-Answer holds
// the exit code and how much of the body is standard output and how much
// standard error; the body must be just as long, so that an answer that was
// cut off is none.
func parseAnswer(reply []byte) (*answer, error) {
	head, body, ok := cutHead(string(reply))
	if !ok {
		return nil, badAnswer("it ends too soon")
	}
	status, rest, _ := cutLine(head)
	if len(status) < 12 || status[:7] != "HTTP/1." || status[8:12] != " 200" {
		return nil, badAnswer("it answered " + printable(status))
	}
	for rest != "" {
		var line string
		line, rest, _ = cutLine(rest)
		const name = "Gatehouse-Answer: "
		if len(line) > len(name) && line[:len(name)] == name {
			return split(line[len(name):], body)
		}
	}
	return nil, badAnswer("it is not for a hook")
}

// split takes the body apart as the header says.
func split(numbers, body string) (*answer, error) {
	var n [3]int
	for i := range n {
		word := numbers
		if at := index(numbers, " "); at >= 0 {
			word, numbers = numbers[:at], numbers[at+1:]
		} else {
			numbers = ""
		}
		v, err := strconv.ParseUint(word, 10, 31)
		if err != nil {
			return nil, badAnswer("it has no lengths")
		}
		n[i] = int(v)
	}
	if numbers != "" || n[0] > 255 || n[1]+n[2] != len(body) {
		return nil, badAnswer("its lengths do not fit")
	}
	return &answer{exit: n[0], stdout: []byte(body[:n[1]]), stderr: []byte(body[n[1]:])}, nil
}

func cutHead(s string) (head, body string, ok bool) {
	i := index(s, "\r\n\r\n")
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+4:], true
}

func cutLine(s string) (line, rest string, ok bool) {
	i := index(s, "\r\n")
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+2:], true
}

// index is strings.Index for the few uses here.
func index(s, sep string) int {
	for i := 0; i+len(sep) <= len(s); i++ {
		if s[i:i+len(sep)] == sep {
			return i
		}
	}
	return -1
}

// printable keeps what a stranger wrote from steering a terminal.
func printable(s string) string {
	if len(s) > 80 {
		s = s[:80]
	}
	out := []byte(s)
	for i, c := range out {
		if c < 0x20 || c > 0x7e {
			out[i] = '?'
		}
	}
	return string(out)
}
