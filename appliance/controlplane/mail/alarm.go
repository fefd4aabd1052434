package mail

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/alerts"
)

const (
	// alarmEvery is the time between two reads of the alerts. An alert in two reads in a
	// row is sent.
	alarmEvery = time.Minute
	// alarmRest is the shortest time between two messages about alerts.
	alarmRest  = 15 * time.Minute
	maxAlarms  = 500 // how many are remembered
	namedAlarm = 10  // how many a message lists
)

// alarm queues messages about new alerts, in the batch that remembers them. made
// reports whether there are new messages.
func (m *Mailer) alarm(ctx context.Context, s *state, now time.Time) (made bool, err error) {
	if m.o.Alerts == nil || len(s.settings.Spec.AlertsTo) == 0 || now.Before(m.alertsAt.Add(alarmEvery)) {
		return false, nil
	}
	m.alertsAt = now
	found, err := m.o.Alerts(ctx)
	if err != nil {
		return false, err
	}
	rested := s.status.AlertsAt == nil || now.Sub(*s.status.AlertsAt) >= alarmRest
	fresh, known := newAlerts(s.status.Alerts, m.suspected, found, rested)
	m.suspected = keysOf(found)
	if len(fresh) == 0 && slices.Equal(known, s.status.Alerts) {
		return false, nil
	}
	s.status.Alerts = known
	var cmds []api.Command
	if len(fresh) > 0 {
		s.status.AlertsAt = &now
		data := digest(fresh)
		for _, to := range s.settings.Spec.AlertsTo {
			cmds = append(cmds, api.QueueMail(api.RandomID(api.KindMailMessage), api.MailMessageSpec{Type: api.MailTypeAlerts, To: to, Data: data}))
		}
	}
	return len(fresh) > 0, m.apply(ctx, now, append(cmds, reported(s.status))...)
}

// newAlerts returns in fresh the alerts to send: those that were also found by the
// previous read, and were not sent yet. known are the keys of the alerts that have been
// sent and still exist.
func newAlerts(reported, suspected []string, found []api.Alert, rested bool) (fresh []api.Alert, known []string) {
	for _, a := range found {
		key := keyOf(a)
		switch {
		case strings.HasPrefix(string(a.Code), "mail."): // mail cannot report that mail does not work
		case slices.Contains(reported, key):
			known = append(known, key)
		case rested && slices.Contains(suspected, key) && len(known) < maxAlarms:
			fresh, known = append(fresh, a), append(known, key)
		}
	}
	return fresh, known
}

// digest returns the data of a message about alerts.
func digest(fresh []api.Alert) map[string]string {
	var lines []string
	for _, a := range fresh[:min(len(fresh), namedAlarm)] {
		line := string(a.Severity) + ": " + a.Message
		if a.Hint != "" {
			line += "\n" + a.Hint
		}
		lines = append(lines, line)
	}
	data := map[string]string{"first": fresh[0].Message, "alerts": strings.Join(lines, "\n\n")}
	if n := len(fresh) - 1; n > 0 {
		data["more"] = strconv.Itoa(n)
	}
	if n := len(fresh) - namedAlarm; n > 0 {
		data["unnamed"] = strconv.Itoa(n)
	}
	return data
}

// keyOf returns a short key of an alert, which is the same as long as the alert exists.
func keyOf(a api.Alert) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(alerts.Key(a))) // writing to a hash never fails
	return fmt.Sprintf("%016x", h.Sum64())
}

func keysOf(found []api.Alert) (keys []string) {
	for _, a := range found {
		keys = append(keys, keyOf(a))
	}
	return keys
}
