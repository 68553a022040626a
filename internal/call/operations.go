package call

// Operation is a row of the table of native operations.
type Operation struct {
	// Name is the canonical name.
	Name string `json:"name"`
	// Endpoint is the only endpoint that serves the operation.
	Endpoint Endpoint `json:"endpoint"`
	// Level is the base level before elements and policy vote.
	Level Level `json:"level"`
	// Rationale says why the level is what it is.
	Rationale string `json:"rationale"`
	// CanBeElevated says whether an element's allow list may lower the level.
	CanBeElevated bool `json:"canBeElevated"`
	// Pinned operations take at least a confirmation of this very use,
	// whatever elements, rules, grants or profiles say.
	Pinned bool `json:"pinned,omitzero"`
	// Ungatable operations are the recovery path: no policy reaches them, and
	// they approve nothing by themselves.
	Ungatable bool `json:"ungatable,omitzero"`
	// FreeIfTightening operations change policy: where a change is proven to
	// loosen nothing they need no confirmation, else they are pinned.
	FreeIfTightening bool `json:"freeIfTightening,omitzero"`
	// Aliases are other names that callers use for the same operation.
	Aliases []string `json:"aliases,omitzero"`
}

// row is an operation as the table below writes it: what is left out comes
// from the endpoint.
type row struct {
	name      string
	rationale string
	level     Level // Deny (zero) means: the endpoint's base
	mark      mark
	aliases   []string
}

type mark uint8

const (
	plain     mark = iota
	pinned         // at least per use, never elevated
	ungatable      // the recovery path
	policyOp       // changes policy: free when it tightens, else pinned
	fixed          // not elevatable, but not pinned either
)

// table is the whole list of native operations, by endpoint.
var table = map[Endpoint][]row{
	Create: {
		{name: "create_element", rationale: "Adds an element; it is inactive until activated"},
		{name: "import_element", rationale: "Adds an element from outside; it is inactive until activated"},
		{name: "addEntry", rationale: "Adds an entry to a memory", aliases: []string{"add_entry", "add_memory_entry"}},
		{name: "record_execution_step", rationale: "Adds a step to a running execution"},
		{name: "verify_challenge", rationale: "Hands in a code that a person read out; it moves one request along and approves nothing by itself", level: AutoApprove, mark: ungatable},
		{name: "release_deadlock", rationale: "Asks a person to release a lock; the release happens on the approver's channel", level: AutoApprove, mark: ungatable},
	},
	Read: {
		{name: "list_elements", rationale: "Reads the list of elements"},
		{name: "get_element", rationale: "Reads one element", aliases: []string{"get_element_details"}},
		{name: "search_elements", rationale: "Searches the elements", aliases: []string{"query_elements", "search"}},
		{name: "validate_element", rationale: "Checks an element and changes nothing"},
		{name: "export_element", rationale: "Returns an element's text"},
		{name: "get_active_elements", rationale: "Reads which elements are active", aliases: []string{"list_active_elements"}},
		{name: "introspect", rationale: "Describes the operations"},
		{name: "get_capabilities", rationale: "Describes what this gate can do"},
		{name: "get_execution_state", rationale: "Reads the state of an execution, or lists them", aliases: []string{"list_executions"}},
		{name: "get_gathered_data", rationale: "Reads what an execution gathered"},
		{name: "evaluate_permission", rationale: "Tells what a call would be decided to, and runs nothing"},
		{name: "get_effective_cli_policies", rationale: "Reads the policy in force"},
		{name: "get_permission_authority", rationale: "Reads who decides here"},
		{name: "get_pending_cli_approvals", rationale: "Reads the caller's own waiting requests"},
		{name: "get_config", rationale: "Reads the gate's settings"},
		{name: "get_build_info", rationale: "Reads version and build"},
		{name: "query_logs", rationale: "Reads the caller's own records"},
		{name: "query_metrics", rationale: "Reads counters"},
		{name: "permission_prompt", rationale: "Asks for a decision on behalf of a host; it approves nothing by itself", mark: ungatable},
	},
	Update: {
		{name: "activate_element", rationale: "Changes which policies are in force", mark: policyOp},
		{name: "deactivate_element", rationale: "Takes a policy out of force", mark: policyOp},
		{name: "edit_element", rationale: "Changes an element, and with it perhaps a policy in force", mark: policyOp, aliases: []string{"upgrade_element"}},
		{name: "set_config", rationale: "Changes the gate's settings", mark: policyOp},
	},
	Delete: {
		{name: "delete_element", rationale: "Removes an element for good", mark: pinned},
		{name: "clear", rationale: "Removes every entry of a memory", mark: pinned, aliases: []string{"clear_memory"}},
		{name: "clear_github_auth", rationale: "Removes a stored credential", mark: pinned},
	},
	Execute: {
		{name: "confirm_operation", rationale: "Files or follows a request; it grants nothing by itself", level: AutoApprove, mark: fixed},
		{name: "approve_cli_permission", rationale: "Moves a host's request along; it approves nothing by itself", level: AutoApprove, mark: ungatable},
		{name: "execute_agent", rationale: "Starts an agent that acts on its own", mark: pinned},
		{name: "abort_execution", rationale: "Ends a running agent", mark: pinned},
		{name: "resume_from_handoff", rationale: "Continues another run's work with its state", mark: pinned},
		{name: "complete_execution", rationale: "Closes an execution", level: ConfirmSession},
		{name: "continue_execution", rationale: "Takes the next step of an execution", level: ConfirmSession},
		{name: "prepare_handoff", rationale: "Packs an execution's state for another run", level: ConfirmSession},
	},
}

var (
	operations = buildOperations()
	byName     = indexOperations(operations)
)

func buildOperations() []Operation {
	var ops []Operation
	for _, e := range Endpoints() {
		for _, r := range table[e] {
			op := Operation{
				Name: r.name, Endpoint: e, Level: e.Base(), Rationale: r.rationale, Aliases: r.aliases,
				CanBeElevated:    r.mark == plain,
				Pinned:           r.mark == pinned,
				Ungatable:        r.mark == ungatable,
				FreeIfTightening: r.mark == policyOp,
			}
			if r.level != Deny {
				op.Level = r.level
			}
			ops = append(ops, op)
		}
	}
	return ops
}

func indexOperations(ops []Operation) map[string]*Operation {
	index := make(map[string]*Operation)
	for i := range ops {
		index[ops[i].Name] = &ops[i]
		for _, alias := range ops[i].Aliases {
			index[alias] = &ops[i]
		}
	}
	return index
}

// Operations returns the table of native operations. It is shared: do not
// change it.
func Operations() []Operation { return operations }

// LookupOperation finds a native operation by its name or an alias.
func LookupOperation(name string) (*Operation, bool) {
	op, ok := byName[name]
	return op, ok
}

// OperationNames lists every name and alias, for suggestions.
func OperationNames() []string {
	names := make([]string, 0, len(byName))
	for i := range operations {
		names = append(names, operations[i].Name)
		names = append(names, operations[i].Aliases...)
	}
	return names
}
