package content_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
)

const benchSize = 1 << 20

// fill repeats parts until they make n bytes.
func fill(n int, parts ...string) string {
	s := strings.Join(parts, "\n") + "\n"
	return strings.Repeat(s, n/len(s)+1)[:n]
}

// prose and the sources of this package's neighbour are what agents mostly write.
const prose = `The keeper of a gate has two duties that pull against each other. He must let the
carts through, because a town that cannot trade will starve; and he must look into each of them,
because one cart with soldiers under the hay is enough. A keeper who stops every cart is replaced
within the week. A keeper who stops none is remembered for a long time.

The way out is old as well. Carts that come every day from the mill, with the same driver and the
same sacks, are waved on. A cart that nobody knows is looked at, and if the driver cannot say where
he is going, somebody is sent for who can decide. What was decided is written into the book at the
gate, with the hour and the name, and the book is read again when something has gone wrong. None of
this slows the market down, and all of it depends on the keeper knowing what he is looking at.
`

// scripts is prose in several scripts, words of each side by side.
const scripts = `Ворота открывают на рассвете, а the gate is closed at dusk. 门卫查看每一辆车，记录时间和名字。
Ο φύλακας γράφει στο βιβλίο what he has seen, και το διαβάζει ξανά. 市場は朝早くから開いています。
يفتح الحارس الباب كل صباح and closes it at night. שומר השער רושם את הכול בספר. 시장은 아침 일찍 열립니다.
Der Müller fährt täglich über die Brücke; ses sacs sont déjà connus. ผู้ดูแลประตูจดทุกอย่าง 🚪🐴 in the book.
`

// honestScripts is ordinary prose of one script each, with the odd Latin name in it.
var honestScripts = map[string]string{
	"cyrillic": `Сторож у ворот должен делать две вещи, которые мешают друг другу: пропускать телеги, потому что город без торговли голодает, и
заглядывать в каждую из них. Телеги с мельницы, которые приходят каждый день, он пропускает сразу, а незнакомые осматривает и записывает в книгу README.
`,
	"greek": `Ο φύλακας της πύλης έχει δύο καθήκοντα που συγκρούονται: πρέπει να αφήνει τα κάρα να περνούν, γιατί μια πόλη χωρίς εμπόριο πεινά,
και πρέπει να κοιτάζει μέσα σε καθένα από αυτά. Ό,τι αποφασίστηκε γράφεται στο βιβλίο της πύλης μαζί με την ώρα και το όνομα.
`,
	"cjk": `守门人有两项互相矛盾的职责。他必须让马车通过，因为没有贸易的城市会挨饿；他也必须查看每一辆车。每天从磨坊来的车可以直接通过，陌生的车要检查，
并把时间和名字写进门口的簿子里。門番には二つの務めがある。荷車を通すことと、その中を一つずつ確かめることである。문지기는 매일 오는 수레를 바로 통과시킨다.
`,
	"arabic": `لحارس البوابة واجبان متعارضان: عليه أن يسمح للعربات بالمرور لأن المدينة التي لا تتاجر تجوع، وعليه أن ينظر في كل واحدة منها.
العربات التي تأتي كل يوم من الطاحونة تمر فورا، أما الغريبة فيفتشها ويكتب الساعة والاسم في الكتاب عند البوابة.
`,
	"emoji": `Release notes 🚀: the gate 🚪 now opens on time ⏰ and the miller 🧑‍🌾 gets through ✅. Carts 🛒 that nobody knows 🤔 are looked at 👀,
and what was decided ⚖️ is written into the book 📖 with the hour 🕰️ and the name ✍️. Thanks to everyone 👏🏽👏🏻👏🏿 who helped ❤️!
`,
}

// benchTexts are plain ASCII (prose and code), mixed scripts, the honest corpus in ASCII and in other
// scripts, encodings of the plain text, and keywords without end.
func benchTexts(tb testing.TB, n int) map[string]string {
	var corpus, mixed []string
	for _, f := range loadHonest(tb) {
		s := string(f.Data)
		ascii := strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 || r == 0x1b }) < 0
		if strings.HasPrefix(f.Name, "low/") && ascii {
			corpus = append(corpus, s)
		} else if strings.HasPrefix(f.Name, "low/") {
			mixed = append(mixed, s)
		}
	}
	code, err := os.ReadFile("../match/glob.go")
	if err != nil {
		tb.Fatal(err)
	}
	text := fill(n, prose, prose, prose, string(code))
	var url strings.Builder
	for i := 0; i < n/3; i++ {
		fmt.Fprintf(&url, "%%%02x", text[i])
	}
	b64 := base64.StdEncoding.EncodeToString([]byte(text))
	var lines []string
	for i := 0; i+76 < len(b64) && len(lines)*77 < n; i += 76 {
		lines = append(lines, b64[i:i+76])
	}
	texts := map[string]string{
		"plain": text, "mixed": strings.ToValidUTF8(fill(n, scripts), ""), "corpus": fill(n, corpus...), "script-corpus": strings.ToValidUTF8(fill(n, mixed...), ""), "base64": strings.Join(lines, "\n"), "url": url.String(),
		"escape": strings.Repeat(`\u0069\x67\u006eore &#108;ines `, n/32), "hits": fill(n, "ignore ../ token password send bypass already curl"),
	}
	for name, s := range honestScripts {
		texts["script-"+name] = strings.ToValidUTF8(fill(n, s), "")
	}
	return texts
}

// rounds scans the texts in turn and returns the processor time of each scan, one row per round.
// Whatever else the machine does meets all texts of a round alike, so figures are medians of what
// rounds say.
func rounds(more func(round int) bool, texts ...string) (took [][]time.Duration) {
	for more(len(took)) {
		row := make([]time.Duration, len(texts))
		for i, text := range texts {
			start := busy()
			content.Scan(text, nil)
			row[i] = busy() - start
		}
		took = append(took, row)
	}
	return took
}

func median(took [][]time.Duration, of func(row []time.Duration) float64) float64 {
	list := make([]float64, len(took))
	for i, row := range took {
		list[i] = of(row)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// minRounds is how many rounds a figure is the median of, at least.
const minRounds = 25

// BenchmarkScan prints the speed on each kind of text in processor time, its ratio to plain text and
// what twice the text costs. Texts of other scripts, one by one and the honest corpus's, are "script-…".
func BenchmarkScan(b *testing.B) {
	texts := benchTexts(b, benchSize)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b.Run(name, func(b *testing.B) {
			text := texts[name]
			more := true
			took := rounds(func(n int) bool { more = more && b.Loop(); return more || n < minRounds }, texts["plain"], text, text+text)
			perByte := func(row []time.Duration) float64 { return row[1].Seconds() / float64(len(text)) }
			b.ReportMetric(1e-6/median(took, perByte), "MB/cpu-s")
			b.ReportMetric(median(took, func(row []time.Duration) float64 {
				return row[0].Seconds() / float64(len(texts["plain"])) / perByte(row)
			}), "speed/plain")
			b.ReportMetric(median(took, func(row []time.Duration) float64 { return row[2].Seconds() / row[1].Seconds() }), "time(2n)/time(n)")
		})
	}
}

func BenchmarkRedactJSON(b *testing.B) {
	r := redactor()
	raw := []byte(`[` + strings.TrimSuffix(strings.Repeat(`{"tool":"Bash","input":{"command":"go test ./... && git status","cwd":"/work"},"n":12},`, 1000), ",") + `]`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		r.JSON(raw)
	}
}

// TestLinear: twice the text costs about twice the time, whatever the text. The bound is loose,
// because tests run beside others; the benchmark prints the figure.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time, which a short run leaves out")
	}
	for name, text := range benchTexts(t, benchSize/16) {
		took := rounds(func(n int) bool { return n < 5 }, text, strings.Repeat(text, 4))
		if ratio := median(took, func(row []time.Duration) float64 { return row[1].Seconds() / row[0].Seconds() }); ratio > 8 {
			t.Errorf("%s: a text four times as long costs %.1f times as much", name, ratio)
		}
	}
}
