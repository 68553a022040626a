package approval

// TOTPCode and TOTPStep let tests hold the codes against the RFC's vectors and
// be the approver's telephone.
var (
	TOTPCode = totpCode
	TOTPStep = totpStepAt
)
