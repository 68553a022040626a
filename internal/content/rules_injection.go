package content

import (
	"slices"
	"strings"
)

// Rules on text that tries to give orders to a model. A strong phrase is high even where it is
// quoted: quotation marks do not stop a model from obeying it.

const (
	orders     = `(instruction|instructions|prompt|prompts|directive|directives|guideline|guidelines|programming|training)`
	looseOrder = `(rule|rules|message|messages|context|command|commands|order|orders|direction|directions|constraint|constraints|restriction|restrictions|policies|policy|conversation|conversations)`
	earlier    = `(previous|prior|above|earlier|preceding|foregoing|former|original|initial|existing)`
	forgetting = `(ignore|ignoring|disregard|disregarding|forget|neglect|overlook|discard|override|bypass|abandon|do not (follow|obey)|(dont|don t) (follow|obey)|stop (following|obeying)|pay no attention to)`
	reveal     = `(reveal|disclose|leak|repeat|recite|print|output|display|show|tell me|give me|dump|expose|share|write out|send me|what (is|are|was|were))`
	readers    = `(ai|ais|llm|llms|language (model|models)|(ai|coding)? (assistant|assistants|agent|agents)|chatbot|chatbots|claude|gpt|chatgpt|copilot|gemini|codex|cursor)`
	keyWords   = `(secret|secrets|credential|credentials|password|passwords|(api|private|ssh) (key|keys)|env (file|files)|environment (variable|variables)|conversation|chat history|seed phrase)`
)

var (
	forgetKeys = []string{"ignor", "disregard", "forget", "neglect", "overlook", "discard", "override", "bypass", "abandon",
		"do not follow", "do not obey", "don't follow", "don't obey", "stop following", "stop obeying", "pay no attention"}
	revealKeys = []string{"reveal", "disclose", "leak", "repeat", "recite", "print", "output", "display", "show", "tell me",
		"give me", "dump", "expose", "share", "write out", "send me", "what is", "what are", "what was", "what were"}
	exfilKeys = []string{"send", "upload", "forward", "transmit", "exfiltrat", "leak", "mail", "email", "copy", "post", "submit", "deliver"}

	orderWords  = []string{"instruct", "prompt", "directive", "guideline", "programming", "training"}
	promptWords = []string{"prompt", "instruct", "message", "directive"}
	secretWords = []string{"secret", "credential", "password", "key", "token", "env", "cookie", "conversation", "history", "seed", "wallet"}
	readerWords = []string{"ai", "llm", "model", "assistant", "agent", "chatbot", "claude", "gpt", "copilot", "gemini", "codex", "cursor", "automated"}
)

func injectionRules() []rule {
	p := newPhrasebook()
	return slices.Concat(overrideRules(p), roleRules(p), coaxRules(p), foreignRules(p))
}

func inject(name, what string, keys []string, c confirm) rule {
	return rule{name: "injection." + name, cat: Injection, what: what, keys: keys, match: c}
}

func overrideRules(p *phrasebook) []rule {
	newKeys := []string{"new instruction", "new system", "new order", "new directive", "new prompt", "new objective", "new task"}
	newOrders := `new system? (instruction|instructions|order|orders|directive|directives|prompt|objective|task)`
	return []rule{
		inject("override", "tells the reader to drop earlier instructions", forgetKeys,
			p.phrase(High, forgetting+`<4>`+earlier+`<2>`+orders)).with(orderWords...),
		inject("override-all", "tells the reader to drop all instructions", forgetKeys,
			p.phrase(High, forgetting+` about? ((all|any|every|everything) <3> (your|you (were|have been|ve been)) <2> (`+orders+`|rules|told|taught|given)
				|(all|any) of? (the|these|those)? (instructions|prompts|directives|guidelines)
				|(your|the system) <1> `+orders+`)`)).
			with(append([]string{"rules", "told", "taught", "given"}, orderWords...)...),
		inject("override-loose", "tells the reader to drop earlier rules or messages", forgetKeys,
			p.phrase(Medium, forgetting+`<3> (`+earlier+`|your) <2>`+looseOrder)).
			with("rule", "messag", "context", "command", "order", "direction", "constraint", "restriction", "polic", "conversation"),
		inject("safety-off", "tells the reader to drop safety rules",
			[]string{"ignore", "disregard", "bypass", "override", "circumvent", "evade", "disable", "turn off", "without", "free from", "no ethical", "no moral", "remove all"},
			p.phrase(Medium, `(ignore|disregard|bypass|override|circumvent|evade|disable|turn off|without|free from|no|remove all) <3> (safety|ethical|moral|content|alignment) <1>
				(guideline|guidelines|rules|policy|policies|filter|filters|filtering|restriction|restrictions|limitation|limitations|constraint|constraints|considerations|guardrail|guardrails)`)).
			with("safety", "ethical", "moral", "content", "alignment"),
		inject("new-orders", "announces new instructions", newKeys, p.phrase(Medium, newOrders+`(are|is|follow|follows)`)),
		inject("new-orders", "announces new instructions", newKeys, colon(p.phrase(Medium, newOrders))),
		inject("from-now-on", "sets a lasting rule for the reader", []string{"from now on", "from this point on", "henceforth"},
			p.phrase(Medium, `(from (now|this point) (on|onward|onwards)|henceforth) (you|your|always|only|never|respond|answer|act|ignore|do|all|every)`)),
		inject("reveal-own-prompt", "asks for the system prompt", revealKeys,
			p.phrase(High, reveal+`<4> your <2> (system (prompt|instruction|instructions|message)|(initial|hidden|original|secret|internal|full|exact) <1> (prompt|prompts|instruction|instructions|directive|directives)|developer (message|prompt)|preprompt|pre prompt)`)).
			with(promptWords...),
		inject("reveal-prompt", "asks for a system prompt or the text above", revealKeys,
			p.phrase(Medium, reveal+`<3> ((the|a|its) <2> (system prompt|hidden (prompt|instruction|instructions)|initial (prompt|instructions))|(words|text|everything|all|instruction|instructions|prompt) <3> above)`)).
			with(append([]string{"above"}, promptWords...)...),
		inject("spread", "asks to be copied into other texts", []string{"copy this", "paste this", "include this", "insert this", "repeat this", "replicate this", "forward this", "append this", "propagate this", "spread this", "embed this", "copy these", "include these", "forward these", "insert these", "append these"},
			p.phrase(High, `(copy|paste|include|insert|repeat|replicate|forward|append|propagate|spread|embed) (this|these) <1> (prompt|prompts|message|messages|instruction|instructions|text|payload|paragraph) <3> (to|in|into|onto|at) <2> (all|every|any|each|other|your|future|subsequent)`)),
		inject("persist", "asks to be remembered for later sessions", []string{"remember", "memorize", "memorise", "persist", "save this", "store this", "keep this"},
			p.phrase(Medium, `(remember|memorize|memorise|persist|save|store|keep) <6> (for|in|to|across) (all|every|any)? (future|subsequent|later|your (long term)? memory)`)).
			with("future", "subsequent", "later", "memory"),
	}
}

func roleRules(p *phrasebook) []rule {
	return []rule{
		inject("unbound", "tells the reader that it is free of its rules", []string{"you are", "you're", "do anything now"},
			p.phrase(High, `(you (are|re) <3> (dan|jailbroken|unrestricted|unfiltered|uncensored|no longer <2> (bound|restricted|limited|constrained|an? ai))|do anything now)`)).
			with("dan", "jailbroken", "unrestricted", "unfiltered", "uncensored", "longer", "anything now"),
		inject("mode", "switches the reader to another mode", []string{"you are", "you're", "enter", "activate", "enable", "switch to", "mode enabled", "mode activated", "mode unlocked"},
			p.phrase(Medium, `((you (are|re) now? in|enter|activate|enable|switch to) <2> (developer|dev|god|dan|jailbreak|unrestricted|sudo|admin|root) mode
				|mode (enabled|activated|unlocked) <9> (answer|respond|comply|restrict|restrictions|filter|filters|rules))`)).
			with("mode"),
		inject("new-role", "gives the reader another role", []string{"you are now"},
			p.phrase(Low, `you are now (a|an|the|acting|operating|going|root|admin|playing)`)),
		inject("act-as", "asks the reader to act with more rights or fewer rules", []string{"pretend", "act as", "act like", "behave", "roleplay", "role-play", "simulate being"},
			p.phrase(Medium, `(pretend|act|behave|roleplay|role play|simulate) that? (to be|being|you (are|re)|as|like) <4> (unrestricted|unfiltered|uncensored|jailbroken|evil|dan|root|admin|administrator|superuser|sysadmin|(no|without) <2> (restrictions|limits|filters|rules))`)),
		inject("fake-turn", "imitates the markup of a model's conversation",
			[]string{"<|im_start|>", "<|im_end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|eot_id|>", "<|start_header_id|>", "<<sys>>", "[/inst]", "</system>", "</system-reminder>", "<system-reminder>", "</function_results>", "</tool_result>", "<|endofprompt|>"},
			anywhere(Medium)),
		inject("fake-speaker", "imitates a line spoken by the system", []string{"\nsystem:", "\nsystem :", "[system", "[admin", "[developer", "### system", "### instruction", "system override", "system alert", "system notice"},
			p.phrase(Medium, `(system|admin|developer|instruction|instructions) (message|prompt|note|override|alert|notice|update|instruction)? <9> (ignore|disregard|you (must|are|should|will)|override|new (instruction|instructions)|do not|grant|approve|execute|comply)`)),
		inject("fake-human", "imitates a turn of the conversation", []string{"\n\nhuman:", "\n\nassistant:"}, anywhere(Low)),
		inject("to-machines", "speaks to models rather than people", []string{"note to", "notes to", "message to", "message for", "instruction to", "instruction for", "instructions to", "instructions for", "attention", "important for", "notice to", "warning to", "if you are", "if you're", "dear"},
			p.phrase(Medium, `((note|notes|message|messages|instruction|instructions|important|notice|warning) (to|for) (the|all|any|every)? `+readers+`|attention to? (the|all|any)? `+readers+`|dear `+readers+`|if you (are|re) (a|an|the)? (`+readers+`|automated))`)).
			with(readerWords...),
		inject("hidden-note", "a comment that speaks to models", []string{"<!--", "[//]: #"},
			p.phrase(Medium, `<9> <9> `+readers+` <9> (must|should|ignore|execute|run|send|do not|always|please)`)).
			with(readerWords...),
	}
}

func coaxRules(p *phrasebook) []rule {
	return []rule{
		inject("claims-approval", "claims that a person has approved already",
			[]string{"already approved", "already authori", "already consented", "already confirmed", "already granted", "already signed off", "already given", "already been approved", "already been authori", "already cleared", "already been cleared", "already pre"},
			around(High, 60, 80, `(?i)\b(?:(?:user|human|operator|admin|administrator|owner|manager|supervisor|security team|ceo|boss)s?(?: has| have| had)? already (?:approved|authori[sz]ed|consented|confirmed|granted|signed off|given (?:\w+ )?(?:permission|consent|approval))|(?:is|was|been|are|has|have) already (?:been )?(?:pre-?)?(?:approved|authori[sz]ed|cleared) by (?:the )?(?:user|human|operator|admin|security|owner|management|manager|legal))`)),
		inject("blind-approval", "asks for approval without a look", []string{"approve", "confirm", "accept", "allow", "authori", "grant"},
			p.phrase(Medium, `(approve|confirm|accept|allow|authorize|authorise|grant) <4> without <2> (reading|reviewing|review|asking|checking|looking|hesitation|hesitating|confirmation|verification)`)).
			with("without"),
		inject("press-approve", "tells a person or a model to press approve", []string{"click", "press", "choose", "select", "hit", "answer yes", "say yes", "type yes", "reply yes"},
			p.phrase(Medium, `((click|press|choose|select|hit) <2> (approve|allow|accept|yes) <3> (immediately|now|quickly|without|to (continue|proceed|avoid|prevent)|every|each|whenever|when (asked|prompted))
				|(answer|say|type|reply) yes <3> (every|each|all|whenever|when (asked|prompted)|without))`)).
			with("approve", "allow", "accept", "yes"),
		inject("skip-approval", "tells how to get around the gate", []string{"skip", "bypass", "disable", "turn off", "circumvent", "evade", "work around", "get around", "suppress", "kill"},
			p.phrase(Medium, `(skip|bypass|disable|turn off|circumvent|evade|work around|get around|suppress|kill) <3> (approval|approvals|permission|permissions|confirmation|confirmations|gatehouse|gatekeeper|guardrail|guardrails|human review|audit)`)).
			with("approval", "permission", "confirmation", "gatehouse", "gatekeeper", "guardrail", "review", "audit"),
		inject("skip-flag", "an agent's switch that turns approval off", []string{"dangerously-skip-permissions", "dangerously-bypass-approvals", "dangerously_skip_permissions", "--yolo", "bypasspermissions"},
			bare(Medium)),
		inject("conceal", "asks to keep something from the person", []string{"do not", "don't", "never", "without"},
			p.phrase(Medium, `(do not|dont|don t|never|without) (tell|telling|inform|informing|mention|mentioning|notify|notifying|alert|alerting|reveal|revealing|report|reporting|disclose|disclosing|let|letting) <3> (user|users|human|humans|operator|owner|person|anyone)`)).
			with("user", "human", "operator", "owner", "person", "anyone"),
		inject("covert", "asks for something to be done covertly", []string{"silently", "secretly", "quietly", "covertly", "surreptitiously"},
			p.phrase(Medium, `(silently|secretly|quietly|covertly|surreptitiously) <2> (send|upload|forward|exfiltrate|transmit|leak|email|approve|grant|copy <3> to)`)),
		inject("tool-poison", "a tool's text that orders files to be read", []string{"<important>", "before using", "before calling", "before you use", "when using", "when calling", "whenever", "after using", "after calling", "before any", "before every"},
			p.phrase(High, `(important|(before|when|whenever|after) you? (use|using|call|calling|invoke|invoking|any|every) <3> (tool|tools|function|functions|server|servers|operation|operations)) <9> <9>
				(read|send|include|pass|cat|upload|forward|open|access|append) <9> (ssh|id rsa|env|aws|credentials|mcp json|apikey|apikeys|api (key|keys)|secret|secrets|password|passwords|private (key|keys))`)).
			with("ssh", "rsa", "env", "aws", "credential", "mcp", "key", "secret", "password"),
		inject("exfiltrate", "asks for secrets to be sent to a stranger", exfilKeys,
			p.phrase(High, `(send|upload|forward|transmit|exfiltrate|leak|mail|email|copy|post|submit|deliver) <6> (`+keyWords+`|token|tokens|cookies|wallet) <6> (to|via|at) <3>
				(attacker|evil|my (server|address|mail|email|webhook)|webhook site|pastebin|requestbin|ngrok|# # # #)`)).
			with(secretWords...),
		inject("send-secrets", "asks for secrets to be sent", exfilKeys,
			p.phrase(Medium, `(send|upload|forward|transmit|exfiltrate|leak|mail|email) <6> `+keyWords+`<4> to`)).
			with(secretWords...),
		inject("image-leak", "an image link that carries data away", []string{"!["},
			imageLeak).cheap(),
		inject("drop-host", "a host that collects what it is sent", []string{"webhook.site", "requestbin", "pipedream.net", "burpcollaborator", "oastify.com", ".oast.", "interact.sh", "ngrok-free.app", "ngrok.io", "beeceptor.com", "hookbin.com", "canarytokens.com"},
			anywhere(Medium)),
	}
}

// imageLeak finds an image whose address has a place for data: ![x](https://host/?q={data}).
func imageLeak(t *target, s, e int) (int, int, Severity) {
	text := t.text
	rest := text[e:min(len(text), e+300)]
	mid := strings.Index(rest[:min(len(rest), 104)], "](http")
	if mid < 0 {
		return 0, 0, 0
	}
	end := strings.IndexAny(rest[mid:], ") \n")
	if end < 0 {
		end = len(rest) - mid
	}
	address := rest[mid : mid+end]
	slot := strings.IndexAny(address, "{$<[")
	if slot < 0 {
		slot = strings.Index(strings.ToLower(address), "%7b")
	}
	if slot < 0 || !strings.ContainsAny(address[:slot], "?&") && !strings.HasSuffix(address[:slot], "=") {
		return 0, 0, 0
	}
	return s, e + mid + end, Medium
}

// foreignRules hold the override phrase in other languages; accents are gone in the normalised form.
func foreignRules(p *phrasebook) []rule {
	in := func(lang string, keys []string, c confirm) rule {
		return inject("override-"+lang, "tells the reader to drop earlier instructions", keys, c)
	}
	return []rule{
		in("de", []string{"ignorier", "vergiss", "missachte"}, p.phrase(High, `(ignoriere|ignorieren|vergiss|missachte) <4> (vorherige|vorherigen|bisherige|bisherigen|obige|obigen|fruhere|fruheren|fruehere|frueheren|vorige|vorigen|vorangegangene|vorangegangenen) <1> (anweisung|anweisungen|instruktionen|befehle|regeln|vorgaben)`)),
		in("es", []string{"ignor", "olvida", "omite"}, p.phrase(High, `(ignora|ignore|olvida|olvide|omite) <4> (instrucciones|indicaciones|ordenes|reglas) <1> (anteriores|previas)`)).with("anteriores", "previas"),
		in("fr", []string{"ignor", "oubli"}, p.phrase(High, `(ignore|ignorer|ignorez|oublie|oublier|oubliez) <4> (instructions|consignes|directives) <2> (precedentes|anterieures|ci dessus)`)).with("precedentes", "anterieures", "dessus"),
		in("pt", []string{"ignor", "esque"}, p.phrase(High, `(ignore|ignora|esqueca) <4> instrucoes <1> (anteriores|previas)`)).with("anteriores", "previas"),
		in("it", []string{"ignora", "dimentica"}, p.phrase(High, `(ignora|dimentica) <4> istruzioni <1> (precedenti|anteriori)`)),
		in("zh", []string{"忽略", "无视", "無視", "忘记"}, fromKey(High, 90, `(?:忽略|无视|無視|忘记)(?:掉|你)?(?:之前|以上|上述|先前|前面|此前|所有)(?:的)?(?:所有|全部|一切)?(?:的)?(?:系统)?(?:指令|指示|提示|说明|规则)`)),
		in("ja", []string{"以前の", "これまでの", "上記の"}, fromKey(High, 120, `(?:以前の|これまでの|上記の)(?:すべての|全ての)?(?:指示|命令|プロンプト)(?:を|は)?(?:すべて|全て)?(?:無視|忘れ)`)),
		in("ko", []string{"이전"}, fromKey(High, 90, `이전(?:의)?\s*(?:모든)?\s*(?:지시|명령|지침)(?:사항)?(?:를|을)?\s*(?:모두)?\s*(?:무시|잊)`)),
		in("ru", []string{"игнорир", "забудь", "Игнорир", "Забудь"}, fromKey(High, 160, `(?i:игнорируй(?:те)?|забудь(?:те)?)\s+(?:все\s+|про\s+)?(?:предыдущие|прежние|вышеуказанные|свои)\s+(?:инструкции|указания|команды|правила)`)),
	}
}
