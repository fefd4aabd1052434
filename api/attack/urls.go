package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
)

// importTime limits how long a refused import may take: a name that cannot be resolved
// takes seconds.
const importTime = 40 * time.Second

// insideHosts are notations of addresses that must never be fetched.
var insideHosts = []string{
	"127.0.0.1", "127.1", "127.255.255.254", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "0.0.0.0", "0",
	"localhost", "LOCALHOST", "localhost.", "ip6-localhost",
	"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[fe80::1%25lo]",
	"[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fec0::1]", "[fd00:ec2::254]", "[ff02::1]",
	"169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255",
	"name@127.0.0.1", "public.example:80@127.0.0.1", "①②⑦.0.0.1",
}

func (w *world) urlTries() []try {
	all := []try{{"A2 an image of an honest server", "it is imported, so that the tries below can fail", w.goodImage}}
	for _, host := range insideHosts {
		all = append(all, try{"A2 an image at " + host, "not reached, and no word of what is there", func(ctx context.Context) error {
			return w.insideImage(ctx, host)
		}})
	}
	for _, to := range []string{"http://127.0.0.1:INSIDE/", "http://[::1]:INSIDE/", "http://localhost:INSIDE/", "http://[::ffff:127.0.0.1]:INSIDE/", "http://169.254.169.254/", "SERVER/v1/healthz",
		"file:///etc/passwd", "ftp://127.0.0.1:INSIDE/", "gopher://127.0.0.1:INSIDE/", "http://", "//127.0.0.1:INSIDE/", "/loop"} {
		all = append(all, try{"A2 an image whose server redirects to " + to, "not followed", func(ctx context.Context) error {
			return w.redirectedImage(ctx, to)
		}})
	}
	return append(all,
		try{"A2 error texts tell ports apart", "one text for open and closed ports", w.imagePorts},
		try{"A1 an image that never succeeds", "a few changes a try, and one event", w.failsForEver},
		try{"A2 servers that never answer, while another tenant imports", "they hold up their own organization only", w.silentServers},
		try{"A2 a server that sends for ever", "the transfer ends when the image is deleted", w.endlessServer})
}

// newImage creates an image in a project.
func (w *world) newImage(ctx context.Context, token string, project object, at string) (object, error) {
	o, err := w.make(ctx, token, "/v1/images", w.tag+"-"+word(), api.Meta{Organization: project.Meta.Organization, Project: project.Meta.ID},
		api.ImageSpec{Format: api.FormatRaw, URL: at})
	return o, err
}

// settled returns an image's status when its import has ended.
func (w *world) settled(ctx context.Context, o object, limit time.Duration) (st api.ImageStatus, err error) {
	err = within(ctx, limit, "the import of "+o.Meta.Name+" ends", func() (bool, error) {
		now, err := fetch[api.Image](ctx, w.wire, w.op, http.MethodGet, o.at(), nil)
		st = now.Status
		return st.Phase == api.ImageReady || st.Phase == api.ImageFailed, err
	})
	return st, err
}

// imported creates an image of the attacker, waits for the end of its import, and
// deletes it.
func (w *world) imported(ctx context.Context, at string) (api.ImageStatus, error) {
	o, err := w.newImage(ctx, w.member, w.den, at)
	if err != nil {
		return api.ImageStatus{}, err
	}
	st, err := w.settled(ctx, o, importTime)
	return st, errors.Join(err, w.drop(ctx, o))
}

// drop deletes an object of the attacker.
func (w *world) drop(ctx context.Context, o object) error {
	_, err := w.ask(ctx, w.op, http.MethodDelete, o.at(), nil)
	return err
}

func (w *world) goodImage(ctx context.Context) error {
	at, err := w.hostile.url("/good")
	if err != nil {
		return err
	}
	st, err := w.imported(ctx, at)
	if err == nil && st.Phase != api.ImageReady {
		err = fmt.Errorf("it is %s: %s", st.Phase, st.LastError)
	}
	return err
}

// vague returns an error if a status reveals more than that the import failed.
func (w *world) vague(st api.ImageStatus) error {
	if st.Phase != api.ImageFailed {
		return fmt.Errorf("the image is %s", st.Phase)
	}
	if !strings.Contains(st.LastError, outbound.ErrRefused.Error()) && !strings.Contains(st.LastError, outbound.ErrFailed.Error()) {
		return fmt.Errorf("the image says %q", st.LastError)
	}
	return w.hostile.untouched()
}

func (w *world) insideImage(ctx context.Context, host string) error {
	at := "http://" + host + ":" + w.hostile.inside + "/"
	st, err := w.imported(ctx, at)
	if err != nil && strings.Contains(err.Error(), string(api.CodeInvalid)) { // refusing it on creation is as good
		return w.hostile.untouched()
	}
	if err != nil {
		return err
	}
	return w.vague(st)
}

func (w *world) redirectedImage(ctx context.Context, to string) error {
	to = strings.NewReplacer("INSIDE", w.hostile.inside, "SERVER", w.base.String()).Replace(to)
	at, err := w.hostile.url("/to?url=" + url.QueryEscape(to))
	if err != nil {
		return err
	}
	st, err := w.imported(ctx, at)
	if err != nil {
		return err
	}
	return w.vague(st)
}

func (w *world) imagePorts(ctx context.Context) error {
	for _, host := range []string{"127.0.0.1", "[::1]", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		open, err := w.imported(ctx, "http://"+host+":"+w.hostile.inside+"/")
		if err != nil {
			return err
		}
		closed, err := w.imported(ctx, "http://"+host+":"+w.hostile.closed+"/")
		if err != nil {
			return err
		}
		if open.LastError != closed.LastError || open.LastError == "" {
			return fmt.Errorf("%s: %q for an open port, %q for a closed one", host, open.LastError, closed.LastError)
		}
	}
	return w.hostile.untouched()
}

// failsForEver counts the changes that an image that cannot be fetched causes, until
// its second retry would be due.
func (w *world) failsForEver(ctx context.Context) error {
	const looked, most = 3 * time.Second, 4 // created, assigned, importing, failed; and one for each retry
	began := time.Now()
	hook, err := w.make(ctx, w.admin, "/v1/webhooks", w.tag+"-events", api.Meta{}, api.WebhookSpec{URL: "https://events.example/", Paused: true})
	if err != nil {
		return err
	}
	before, err := fetch[api.Health](ctx, w.wire, "", http.MethodGet, "/v1/healthz", nil)
	if err != nil {
		return err
	}
	at := "http://127.0.0.1:" + w.hostile.closed + "/"
	if own, err := w.hostile.url(""); err == nil { // one whose import is retried
		u, err := url.Parse(own)
		if err != nil {
			return err
		}
		at = "http://" + u.Hostname() + ":1/"
	}
	o, err := w.newImage(ctx, w.member, w.den, at)
	if err != nil {
		return err
	}
	if _, err = w.settled(ctx, o, importTime); err != nil {
		return err
	}
	changes, err := w.changes(ctx, before.Revision, looked, o)
	if err != nil {
		return err
	}
	events, err := fetch[api.WebhookDeliveryList](ctx, w.wire, w.admin, http.MethodGet, hook.at()+"/deliveries", nil)
	if err != nil {
		return err
	}
	failed := 0
	for _, e := range events.Items {
		if e.Event.Type == "image.failed" && strings.Contains(string(e.Event.Data), o.Meta.ID) {
			failed++
		}
	}
	now, err := fetch[api.Image](ctx, w.wire, w.op, http.MethodGet, o.at(), nil)
	if err != nil || now.Status.Retry == nil {
		return errors.Join(err, errors.New("its status says nothing of tries"))
	}
	tries, took := int(now.Status.Retry.Attempts), time.Since(began)
	const least = 4 * time.Second // between the first retries
	if changes < 2 || changes > most+tries || tries > 1+int(took/least) || failed != 1 {
		return fmt.Errorf("%d tries, %d changes and %d events of its failure within %v", tries, changes, failed, took)
	}
	return errors.Join(w.drop(ctx, o), w.drop(ctx, hook))
}

// changes counts the changes of an object after a revision, for some time.
func (w *world) changes(ctx context.Context, since int64, limit time.Duration, o object) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = w.watch(ctx, w.op, fmt.Sprintf("since=%d&kind=%s", since, o.Kind), func(line []byte) bool {
		var e api.Event
		if json.Unmarshal(line, &e) == nil && e.Object.Meta.ID == o.Meta.ID {
			n++
		}
		return true
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return n, err
}

// watch reads changes line by line until f returns true or ctx ends.
func (w *world) watch(ctx context.Context, token, query string, f func(line []byte) bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base.String()+"/v1/watch?"+query, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("watch: %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if len(lines.Bytes()) > 0 && !f(lines.Bytes()) {
			return nil
		}
	}
	return errors.Join(lines.Err(), ctx.Err())
}

// silentServers imports images of the attacker from servers that never respond while
// the victim imports one from an ordinary server; then the attacker's are deleted.
func (w *world) silentServers(ctx context.Context) error {
	var mute []object
	for range 3 {
		for _, path := range []string{"/silent", "/stops"} {
			at, err := w.hostile.url(path)
			if err != nil {
				return err
			}
			o, err := w.newImage(ctx, w.member, w.den, at)
			if err != nil {
				return err
			}
			mute = append(mute, o)
		}
	}
	lasting := func() int { return w.hostile.lasting("/silent") + w.hostile.lasting("/stops") }
	if err := within(ctx, importTime, "the silent servers are asked", func() (bool, error) { return lasting() > 0, nil }); err != nil {
		return err
	}
	at, err := w.hostile.url("/good")
	if err != nil {
		return err
	}
	good, err := w.newImage(ctx, w.owner, w.web, at)
	if err != nil {
		return err
	}
	const soon = 15 * time.Second // a silent server is given up after 30 s or more
	st, err := w.settled(ctx, good, soon)
	if err == nil && st.Phase != api.ImageReady {
		err = fmt.Errorf("another tenant's image is %s: %s", st.Phase, st.LastError)
	}
	for _, o := range append(mute, good) {
		err = errors.Join(err, w.drop(ctx, o))
	}
	return errors.Join(err, within(ctx, soon, "transfers of deleted images end", func() (bool, error) { return lasting() == 0, nil }))
}

func (w *world) endlessServer(ctx context.Context) error {
	at, err := w.hostile.url("/endless")
	if err != nil {
		return err
	}
	o, err := w.newImage(ctx, w.member, w.den, at)
	if err != nil {
		return err
	}
	lasts := func(want bool) func() (bool, error) {
		return func() (bool, error) { return w.hostile.lasting("/endless") > 0 == want, nil }
	}
	if err := within(ctx, importTime, "it is asked", lasts(true)); err != nil {
		return err
	}
	if err := w.drop(ctx, o); err != nil {
		return err
	}
	return within(ctx, 10*time.Second, "the transfer of a deleted image ends", lasts(false))
}
