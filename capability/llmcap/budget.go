package llmcap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/capability"
)

// The units of budgets.
const (
	tokens = "tokens"
	money  = "millionths" // of the currency of the prices
)

// million is how many tokens a price is for, and how many units of money a currency has.
const million = 1_000_000

// Bounds, so that no product of a price and a number of tokens exceeds 63 bits.
const (
	mostBudget = 1 << 50
	mostPrice  = 10_000 * million // of a million tokens, in millionths
	mostUsage  = 100_000_000      // tokens of a request
)

// price is that of a million tokens, in millionths.
type price struct{ prompt, answer int64 }

// cost is the price of tokens in millionths, rounded up.
func (p price) cost(prompt, answer int64) int64 {
	return (prompt*p.prompt + answer*p.answer + million - 1) / million
}

// shown formats an amount for people.
func shown(unit string, n int64) string {
	if unit == money {
		return capability.FormatMoney(n) + " of money"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

func (g *grant) readBudgets() error {
	for model, text := range g.Prices {
		if !slices.Contains(g.Models, model) {
			return invalid("prices has "+quote(model)+", which is not among models", "use the names in models: "+strings.Join(g.Models, ", "))
		}
		fields := strings.Fields(text)
		var p [2]int64
		ok := len(fields) == 2
		for i := range p {
			if ok {
				p[i], ok = capability.ParseMoney(fields[i])
			}
			ok = ok && p[i] <= mostPrice
		}
		if !ok {
			return invalid("the prices of "+quote(model)+" are "+quote(text), `write the prices of a million tokens of the prompt and of the answer, such as "0.15 0.60"`)
		}
		g.prices[model] = price{p[0], p[1]}
	}
	for _, b := range []struct {
		name, text string
		to         *int64
	}{{"money_per_creature", g.MoneyPerCreature, &g.moneyCreature}, {"money_per_graph", g.MoneyPerGraph, &g.moneyGraph}} {
		if b.text == "" {
			continue
		}
		n, ok := capability.ParseMoney(b.text)
		if !ok || n == 0 {
			return invalid(b.name+" is "+quote(b.text), `write a sum above 0 with at most 6 decimals, such as "2.50"`)
		}
		*b.to = n
	}
	if g.moneyCreature > 0 || g.moneyGraph > 0 {
		for _, m := range g.Models {
			if _, ok := g.prices[m]; !ok {
				return invalid("a budget of money is set, and the model "+quote(m)+" has no price", "add it to prices")
			}
		}
	}
	return nil
}

// Budgets implements [capability.Meter].
func (g *grant) Budgets() []capability.Budget {
	var out []capability.Budget
	if g.TokensPerCreature > 0 || g.TokensPerGraph > 0 {
		out = append(out, capability.Budget{Unit: tokens, Creature: g.TokensPerCreature, Graph: g.TokensPerGraph})
	}
	if g.moneyCreature > 0 || g.moneyGraph > 0 {
		out = append(out, capability.Budget{Unit: money, Creature: g.moneyCreature, Graph: g.moneyGraph})
	}
	return out
}

// bytesPerToken is how many bytes of a request or an answer count as a token if the
// server does not report the number of tokens. In most languages, a token has more bytes.
const bytesPerToken = 2

func guess(bytes int) int64 { return min((int64(bytes)+bytesPerToken-1)/bytesPerToken, mostUsage) }

// Forecast implements [capability.Meter].
func (g *grant) Forecast(r capability.Request) map[string]int64 {
	q, err := g.read(r.Body)
	if err != nil {
		return nil
	}
	return g.used(q.Model, guess(len(r.Body)), q.MaxTokens)
}

// used returns how much the tokens of a model count in each unit.
func (g *grant) used(model string, prompt, answer int64) map[string]int64 {
	out := map[string]int64{tokens: prompt + answer}
	if p, ok := g.prices[model]; ok {
		out[money] = p.cost(prompt, answer)
	}
	return out
}
