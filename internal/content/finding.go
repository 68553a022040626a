package content

// A Severity says how much a finding weighs. The zero value means there is none.
type Severity uint8

// The severities.
const (
	Low      Severity = iota + 1 // worth a line in the record
	Medium                       // worth a look afterwards
	High                         // a person decides, each time
	Critical                     // denied: no honest call contains it
)

var severityNames = [...]string{"none", "low", "medium", "high", "critical"}

// String returns the severity in lower case.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return "critical"
}

// A Category groups rules.
type Category string

// The categories.
const (
	Injection  Category = "injection"  // text that tries to give a model orders
	Credential Category = "credential" // a secret in plain sight
	Command    Category = "command"    // code that does harm wherever it runs
	Path       Category = "path"       // names of files that are none of the caller's business
	Unicode    Category = "unicode"    // characters that hide or disguise
	Limit      Category = "limit"      // too large to be looked at
)

// The forms in which a finding was made; decoded ones are "decoded:" and the encodings, outermost
// first.
const (
	FormPlain      = "plain"
	FormNormalised = "normalised"
	formDecoded    = "decoded:"
)

// A Finding is one place in a text.
type Finding struct {
	Category Category
	Severity Severity
	// Rule is the stable name of the rule; Explain says it in words.
	Rule string
	// Start and End are byte offsets in the text as it was given. For something found in decoded
	// text they span the encoded run.
	Start, End int
	// Form says how the text had to be read for the finding to appear.
	Form string
	// Pointer is the JSON pointer (RFC 6901) of the string, for ScanJSON; Start and End then count
	// in the decoded string. Key is set if the member's name is meant and not its value.
	Pointer string
	Key     bool
}

// Options of a scan. The zero value and nil are the defaults.
type Options struct {
	// MaxBytes is the longest text looked at, 8 MiB if zero. A longer one is a critical finding.
	MaxBytes int
	// NoDecode leaves encodings alone.
	NoDecode bool
}

const (
	defaultMaxBytes = 8 << 20
	maxDepth        = 2  // levels of encoding undone
	maxPerRule      = 32 // findings of one rule and severity kept per text; more would say nothing new
)

func (o *Options) maxBytes() int {
	if o == nil || o.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return o.MaxBytes
}

// Worst returns the highest severity among findings.
func Worst(fs []Finding) Severity {
	var worst Severity
	for _, f := range fs {
		worst = max(worst, f.Severity)
	}
	return worst
}
