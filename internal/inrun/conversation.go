package inrun

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// The limits of a conversation. A line holds at most a file's content twice;
// more questions at once than a model makes tool calls in one turn are a fault.
const (
	maxLine      = 32 << 20
	maxQuestions = 64
)

// What ends a conversation before its turn is over.
var (
	// ErrEnded says that the CLI went away before its turn was over.
	ErrEnded = errors.New("the agent ended before its turn was over")
	// ErrGarbage says that the CLI printed what cannot be read.
	ErrGarbage = errors.New("the agent printed a line that cannot be read")
	// ErrUnasked says that the CLI ran a tool without asking.
	ErrUnasked = errors.New("the agent used a tool without asking")
)

// conversation is what all channels have in common: lines in and out, questions
// that are being decided, and calls that were let run.
type conversation struct {
	ask Ask
	// tells says whether the log gets [Line]s, rewrites whether the channel can
	// have something else run than was asked about.
	tells, rewrites bool

	mu      sync.Mutex
	in      io.WriteCloser
	log     io.Writer
	broken  error // the first failure to write
	closed  bool
	asking  map[string]context.CancelFunc // by the host's id of the question
	settled map[string]bool               // tool uses that were asked about
	open    map[string]opened             // tool uses that were let run

	answers sync.WaitGroup
}

// opened is a call that was let run and whose end was not told.
type opened struct {
	name  string
	ended func(Outcome)
}

func newConversation(ask Ask, in io.WriteCloser, log io.Writer) *conversation {
	return &conversation{
		ask: ask, tells: true, in: in, log: log,
		asking: make(map[string]context.CancelFunc), settled: make(map[string]bool), open: make(map[string]opened),
	}
}

// hold reads lines until one of them says that the turn is over, the stream
// ends or something is wrong. Whatever waits for an answer then gets none.
func (c *conversation) hold(ctx context.Context, out io.Reader, begin func() error, take func(ctx context.Context, line []byte) (over bool, err error)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, c.close)
	defer func() {
		stop()
		cancel()
		c.close()
		c.answers.Wait()
		c.forget()
	}()
	if err := begin(); err != nil {
		return err
	}
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return errors.Join(ErrEnded, ctx.Err(), c.failure())
		}
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		if len(line) == 0 {
			continue
		}
		if line[0] != '{' { // no question is anything but an object
			c.tell(Line{Type: "note", Text: text(line)})
			continue
		}
		if !jsontext.Value(line).IsValid(lenient) {
			return fmt.Errorf("%w: %.200q", ErrGarbage, line)
		}
		if over, err := take(ctx, line); over || err != nil {
			return errors.Join(err, c.failure())
		}
	}
}

// lenient reads what decides nothing: hosts pass on what tools print, and that
// may be cut in the middle of a character. Questions are read strictly.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// readLine returns a line without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrGarbage, maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(bytes.TrimSpace(line)) == 0:
			return nil, err
		}
		return bytes.TrimSpace(line), nil
	}
}

func text(line []byte) string { return string(bytes.ToValidUTF8(line, []byte("\uFFFD"))) }

// send writes one message.
func (c *conversation) send(message any) error {
	line, err := json.Marshal(message, json.Deterministic(true))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return io.ErrClosedPipe
	}
	if _, err = c.in.Write(append(line, '\n')); err != nil && c.broken == nil {
		c.broken = err
	}
	return err
}

func (c *conversation) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		_ = c.in.Close() // the CLI may have gone first
	}
}

func (c *conversation) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// tell writes a line to the log, where the channel writes lines of its own.
func (c *conversation) tell(l Line) {
	if !c.tells {
		return
	}
	if line, err := json.Marshal(l, json.Deterministic(true), lenient); err == nil {
		c.pass(line)
	}
}

// pass writes a line to the log as it is.
func (c *conversation) pass(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.log.Write(append(bytes.Clone(line), '\n')); err != nil && c.broken == nil {
		c.broken = err
	}
}

// question has a tool call decided and answers it. It does not wait: a CLI may
// ask about several calls at once.
func (c *conversation) question(ctx context.Context, key string, t Tool, answer func(Verdict) error) {
	c.mu.Lock()
	_, twice := c.asking[key]
	full := len(c.asking) >= maxQuestions
	ctx, cancel := context.WithCancel(ctx)
	if !twice && !full {
		c.asking[key] = cancel
	}
	c.settled[t.ID] = true
	c.mu.Unlock()
	if twice || full {
		cancel()
		c.settle(t, Verdict{Why: "Not run: too many calls wait for an answer. Make them one after the other."}, answer)
		return
	}
	c.answers.Go(func() {
		defer cancel()
		defer c.takeBack(key)
		v := c.decide(ctx, t)
		if v.Answer == Run && ctx.Err() != nil {
			v = v.not(takenBack)
		}
		if v.Answer == Run && v.Args != nil && !c.rewrites {
			v = v.not("Not run: it was approved with changes that this agent cannot be given. Make this call instead: " + string(v.Args))
		}
		c.settle(t, v, answer)
	})
}

// takenBack is said of a question whose answer comes too late.
const takenBack = "Not run: the question was taken back."

// not refuses what was let run before the CLI hears of it.
func (v Verdict) not(why string) Verdict {
	if v.Ended != nil {
		v.Ended(Refused)
	}
	return Verdict{Why: why}
}

// decide asks, and refuses where that fails.
func (c *conversation) decide(ctx context.Context, t Tool) (v Verdict) {
	defer func() {
		if r := recover(); r != nil {
			v = Verdict{Why: "Denied: the gate could not decide."}
		}
	}()
	if t.Name == "" || t.Args.Kind() != '{' || !t.Args.IsValid() {
		return Verdict{Why: "Denied: the call cannot be read."}
	}
	if ctx.Err() != nil {
		return Verdict{Why: takenBack}
	}
	return c.ask(ctx, t)
}

// settle answers, and remembers what was let run.
func (c *conversation) settle(t Tool, v Verdict, answer func(Verdict) error) {
	if v.Answer != Run {
		c.tell(Line{Type: "denied", ID: t.ID, Name: t.Name, Text: v.Why})
	} else {
		c.mu.Lock()
		c.open[t.ID] = opened{t.Name, v.Ended}
		c.mu.Unlock()
		c.tell(Line{Type: "tool", ID: t.ID, Name: t.Name})
	}
	// An answer that could not be sent lets nothing run; the stream ends.
	_ = answer(v)
}

// takeBack ends the deciding of a question.
func (c *conversation) takeBack(key string) {
	c.mu.Lock()
	cancel := c.asking[key]
	delete(c.asking, key)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// ended notes how a tool use ended. One that was never asked about must not
// have run, unless it does nothing or everything that it does is asked about.
func (c *conversation) ended(id, name string, outcome Outcome) error {
	c.mu.Lock()
	o, found := c.open[id]
	delete(c.open, id)
	asked := c.settled[id]
	c.mu.Unlock()
	if found {
		if o.ended != nil {
			o.ended(outcome)
		}
		c.tell(Line{Type: "ended", ID: id, Name: o.name, Outcome: outcome.String()})
		return nil
	}
	if op := call.FoldTool(name); asked || outcome != Succeeded || op == call.OpNote || op == call.OpTask {
		return nil
	}
	return fmt.Errorf("%w: %.100q", ErrUnasked, name)
}

// forget ends the calls whose end was not told.
func (c *conversation) forget() {
	for id, o := range c.open {
		if o.ended != nil {
			o.ended(Unknown)
		}
		c.tell(Line{Type: "ended", ID: id, Name: o.name, Outcome: Unknown.String()})
	}
}
