package creatures

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/conformance/stage"
)

// warmIsFresh hands out the same random deliveries with one instance and with many.
func warmIsFresh(ctx context.Context, b *bench) ([]string, error) {
	for seed := range uint64(3) {
		list := b.deliveries(seed)
		warm, err := b.perform(ctx, list, nil)
		if err != nil {
			return nil, err
		}
		fresh, err := b.perform(ctx, list, func(o *stage.Options) { o.Fresh = true })
		if err != nil {
			return nil, err
		}
		if wrong := differ(list, warm, fresh, "with one instance", "with a fresh instance for every turn"); wrong != "" {
			return []string{fmt.Sprintf("seed %d: %s", seed, wrong)}, nil
		}
	}
	return nil, nil
}

// anyBytes hands out what is not text.
func anyBytes(ctx context.Context, b *bench) (wrong []string, err error) {
	payloads := []string{"", "\xff", "\x00", "\xc3\x28\x00\xfe", strings.Repeat("\x80", 1000), "{", "\xef\xbb\xbf{}", strings.Repeat("x", 60_000)}
	for _, kind := range []stage.KindName{stage.Message, stage.Request, stage.Output, stage.TimerFired, stage.Result} {
		for _, payload := range payloads {
			d := stage.Delivery{Kind: kind, Payload: []byte(payload), Headers: map[string]string{"h": "\xff\xfe", "": ""}}
			delete(d.Headers, "")
			if kind == stage.Message && len(b.listen) > 0 {
				d.Alias = b.listen[0]
			}
			if kind == stage.TimerFired {
				d.Name = "t"
			}
			rec, err := b.deliverAlone(ctx, &d)
			if err != nil {
				return nil, err
			}
			if rec.Error != nil && rec.Status == abi.Trapped.String() {
				wrong = append(wrong, fmt.Sprintf("%s with the payload %.20q traps: %s", kind, payload, clip(rec.Error.Message)))
			}
		}
	}
	return wrong, nil
}

// stillClock hands out random deliveries, and expects that no turn runs until it is
// stopped: the clock of the stage never advances by itself.
func stillClock(ctx context.Context, b *bench) ([]string, error) {
	list := b.deliveries(10)
	records, err := b.perform(ctx, list, nil)
	if err != nil {
		return nil, err
	}
	for i, rec := range records {
		if rec.Spun() {
			return []string{fmt.Sprintf("%s does not end by itself: %s", title(&list[min(i, len(list)-1)]), clip(rec.Error.Message))}, nil
		}
	}
	return nil, nil
}

// otherLimits compares the effects under the default limits with those under larger ones,
// and expects that turns end under small ones.
func otherLimits(ctx context.Context, b *bench) ([]string, error) {
	list := b.deliveries(20)
	usual, err := b.perform(ctx, list, nil)
	if err != nil {
		return nil, err
	}
	large, err := b.perform(ctx, list, func(o *stage.Options) {
		d := abi.DefaultLimits
		o.Limits = abi.Limits{
			Memory: 2 * d.Memory, Fuel: 2 * d.Fuel, Message: 2 * d.Message, Sends: 2 * d.Sends, SendBytes: 2 * d.SendBytes, Output: 2 * d.Output,
			LogLines: 2 * d.LogLines, LogBytes: 2 * d.LogBytes, StateKey: 2 * d.StateKey, StateValue: 2 * d.StateValue, State: 2 * d.State,
			StateWrites: 2 * d.StateWrites, Calls: 2 * d.Calls, Handles: 2 * d.Handles, Timers: 2 * d.Timers, TimerBytes: 2 * d.TimerBytes,
			Requests: 2 * d.Requests, Tools: 2 * d.Tools, Table: 2 * d.Table,
		}
	})
	if err != nil {
		return nil, err
	}
	if wrong := differ(list, usual, large, "with the default limits", "with limits twice as large"); wrong != "" {
		return []string{wrong}, nil
	}
	small, err := b.perform(ctx, list, func(o *stage.Options) {
		o.Limits = abi.Limits{Message: 64, Sends: 1, SendBytes: 64, Output: 16, LogLines: 1, LogBytes: 64, StateValue: 16, State: 128, StateWrites: 1, Timers: 1, Requests: 1}
	})
	if err != nil {
		return nil, err
	}
	for i, rec := range small {
		if rec.Spun() {
			return []string{fmt.Sprintf("with small limits %s does not end by itself: %s", title(&list[min(i, len(list)-1)]), clip(rec.Error.Message))}, nil
		}
	}
	return nil, nil
}

// badConfiguration starts the creature with configurations that do not fit its schema.
func badConfiguration(ctx context.Context, b *bench) (wrong []string, err error) {
	for _, config := range b.misfits() {
		c, err := b.creature(config, nil)
		if err != nil {
			return nil, err
		}
		_, err = c.Start(ctx)
		c.Close(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			continue
		}
		if why := unfit(err); why != "" {
			wrong = append(wrong, fmt.Sprintf("with the configuration %s: %s", clip(config), why))
		}
	}
	return wrong, nil
}

// startReadsOnly stops an instance that has handled nothing, and one that has.
func startReadsOnly(ctx context.Context, b *bench) (wrong []string, err error) {
	for _, deliver := range []bool{false, true} {
		c, err := b.creature(b.config, nil)
		if err != nil {
			return nil, err
		}
		defer c.Close(ctx)
		if _, err = c.Start(ctx); err == nil && deliver {
			var rec *stage.Record
			rec, err = c.Deliver(ctx, &stage.Delivery{Kind: stage.Start})
			if err == nil && rec.Error != nil && (rec.Status == abi.Trapped.String() || rec.Spun()) {
				wrong = append(wrong, "its first delivery, start, does not end by itself: "+clip(rec.Error.Message))
			}
		}
		if err == nil {
			_, err = c.Stop(ctx)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			wrong = append(wrong, "it does not start and stop in an orderly way: "+err.Error())
		}
	}
	return wrong, nil
}

// differ returns the first difference between two runs of the same deliveries, or "".
func differ(list []stage.Delivery, a, b []*stage.Record, how, other string) string {
	for i := range max(len(a), len(b)) {
		x, y := told(a, i), told(b, i)
		if slices.Equal(x, y) {
			continue
		}
		for n := range max(len(x), len(y)) {
			if p, q := line(x, n), line(y, n); p != q {
				return fmt.Sprintf("delivery %d, %s: %s it has %s, %s %s", i+1, title(&list[min(i, len(list)-1)]), how, clip(p), other, clip(q))
			}
		}
	}
	return ""
}

func line(list []string, n int) string {
	if n < len(list) {
		return list[n]
	}
	return "nothing"
}

// told returns what a turn did, one line for each effect.
func told(records []*stage.Record, i int) (out []string) {
	if i >= len(records) {
		return []string{"no delivery"}
	}
	for _, e := range records[i].Effects {
		out = append(out, e.String())
	}
	return append(out, "status "+records[i].Status)
}

// title names a delivery.
func title(d *stage.Delivery) string {
	if d.Advance != "" {
		return "an advance of " + d.Advance
	}
	out := string(d.Kind)
	if d.Alias != "" {
		out += " on " + d.Alias
	}
	return fmt.Sprintf("%s with the payload %.60q", out, []byte(d.Payload))
}
