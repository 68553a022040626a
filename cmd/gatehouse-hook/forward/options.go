package forward

import (
	"strconv"
	"time"
)

// options is what the command line says.
type options struct {
	agent  string
	socket string
	// owner is the user whom the gate runs as.
	owner uint32
	// program is the gatehouse to start when the gate is away, "" for none:
	// where the gate is a service, whoever runs services starts it.
	program string
	// home is what the started gate takes for its user's home.
	home string
	// deadline is when the answer must be out.
	deadline time.Duration
	// deferring says that the host takes "later" for an answer.
	deferring bool
}

// defaultDeadline lies inside the shortest time-out among hosts.
const defaultDeadline = 4 * time.Second

// usage is what is wrong with a command line.
type usage string

func (u usage) Error() string { return string(u) }

// parse reads the command line. There is no flag package: it would cost more
// than it saves.
func parse(args []string) (*options, error) {
	o := &options{deadline: defaultDeadline}
	owner := false
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return nil, usage("name the agent first")
	}
	o.agent = args[0]
	for i := 0; i < len(o.agent); i++ {
		if c := o.agent[i]; (c < 'a' || c > 'z') && c != '-' {
			return nil, usage("the agent's name has letters only")
		}
	}
	for args = args[1:]; len(args) > 0; {
		name := args[0]
		if name == "--defer" {
			o.deferring, args = true, args[1:]
			continue
		}
		if len(args) < 2 {
			return nil, usage(name + " has no value")
		}
		value := args[1]
		args = args[2:]
		switch name {
		case "--socket":
			o.socket = value
		case "--owner":
			n, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return nil, usage("--owner takes a user's number")
			}
			o.owner, owner = uint32(n), true
		case "--program":
			o.program = value
		case "--home":
			o.home = value
		case "--deadline":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil || n == 0 {
				return nil, usage("--deadline takes seconds")
			}
			o.deadline = time.Duration(n) * time.Second
		default:
			return nil, usage("there is no flag " + name)
		}
	}
	if len(o.socket) < 2 || o.socket[0] != '/' || !owner {
		return nil, usage("--socket and --owner say where the gate is; `gatehouse connect` writes them")
	}
	return o, nil
}
