package idle

import "testing"

// TestWaitersLearnOfEachIdleMoment proves that a count of zero wakes waiters even if it rises
// again at once, and that an idle counter has no waiters.
func TestWaitersLearnOfEachIdleMoment(t *testing.T) {
	var c Counter
	if c.Wait() != nil || c.Busy() || len(c.waiters) != 0 {
		t.Fatal("a new counter is not idle")
	}
	c.Add(2)
	first, second := c.Wait(), c.Wait()
	c.Add(-1)
	select {
	case <-first:
		t.Fatal("a waiter was notified while the count was one")
	default:
	}
	c.Add(-1)
	c.Add(1)
	<-first
	<-second
	if third := c.Wait(); third == nil || !c.Busy() || len(c.waiters) != 1 {
		t.Error("a later waiter was notified at once, or with the earlier ones")
	}
}
