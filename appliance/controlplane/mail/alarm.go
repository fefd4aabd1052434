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
	// alarmEvery is between looks at the alerts. What is there at two of them is told.
	alarmEvery = time.Minute
	// alarmRest is the least between two messages about alerts.
	alarmRest  = 15 * time.Minute
	maxAlarms  = 500 // that are remembered
	namedAlarm = 10  // that a message names
)

// alarm tells of new alerts, in the batch that remembers them. made reports that there
// are new messages.
func (m *Mailer) alarm(ctx context.Context, s *state, now time.Time) (made bool, err error) {
	if m.o.Alerts == nil || len(s.settings.Spec.AlertsTo) == 0 || now.Before(m.looked.Add(alarmEvery)) {
		return false, nil
	}
	m.looked = now
	found, err := m.o.Alerts(ctx)
	if err != nil {
		return false, err
	}
	rested := s.status.AlertsAt == nil || now.Sub(*s.status.AlertsAt) >= alarmRest
	fresh, known := news(s.status.Alerts, m.suspected, found, rested)
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

// news are the alerts that are to be told of: those that were there at the look before,
// too, and that nobody was told of. known are the keys of those that somebody was told
// of then and that are still there.
func news(told, suspected []string, found []api.Alert, rested bool) (fresh []api.Alert, known []string) {
	for _, a := range found {
		key := keyOf(a)
		switch {
		case strings.HasPrefix(string(a.Code), "mail."): // who cannot send mail sends none about it
		case slices.Contains(told, key):
			known = append(known, key)
		case rested && slices.Contains(suspected, key) && len(known) < maxAlarms:
			fresh, known = append(fresh, a), append(known, key)
		}
	}
	return fresh, known
}

// digest is what a message about alerts is filled in with.
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

// keyOf an alert is short, and the same as long as it is there.
func keyOf(a api.Alert) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(alerts.Key(a))) // a hash takes everything
	return fmt.Sprintf("%016x", h.Sum64())
}

func keysOf(found []api.Alert) (keys []string) {
	for _, a := range found {
		keys = append(keys, keyOf(a))
	}
	return keys
}
