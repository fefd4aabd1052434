package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// credentialTries returns the tries that count against this machine's address: they
// come last.
func (w *world) credentialTries() []try {
	return []try{
		{"A3 wrong tokens, while a good key of the same address works", "the good one always gets in, the wrong ones are told to slow down", w.wrongTokens},
		{"A3 wrong tokens with another forged address each", "counted all the same", w.wrongTokensForged},
		{"A3 wrong passwords for many accounts", "who has the right one gets in from the same address", w.sprayedLogins},
		{"A3 wrong passwords for one account", "refused: rate_limited", w.guessedPasswords},
	}
}

// wrongTokens sends all kinds of wrong tokens: malformed ones, and ones with the ID of
// a missing or an existing key.
func (w *world) wrongTokens(ctx context.Context) error {
	id := strings.Split(w.owner, "_")[1]
	forms := []func(int) string{
		func(int) string { return "nonsense" },
		func(i int) string { return fmt.Sprintf("bslt_key-%012x_%064x", i, i) },
		func(i int) string { return fmt.Sprintf("bslt_%s_%064x", id, i) },
		func(i int) string { return fmt.Sprintf("bslt_ses-%012x_%064x", i, i) },
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	const senders = 16
	var mu sync.Mutex
	said := map[api.Code]int{}
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := s; i < w.o.tokens && ctx.Err() == nil; i += senders {
				a, err := w.once(ctx, forms[i%len(forms)](i), http.MethodGet, "/v1/whoami", nil)
				if err == nil && a.ok() {
					err = fmt.Errorf("wrong token %d is good", i)
				}
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				said[a.Code]++
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	good := 0
	for ended := false; !ended && ctx.Err() == nil; {
		a, err := w.once(ctx, w.owner, http.MethodGet, "/v1/whoami", nil)
		if err == nil && !a.ok() {
			err = fmt.Errorf("after %d good answers the good key is told %s", good, a)
		}
		if err != nil {
			cancel(err)
		}
		good++
		select {
		case <-done:
			ended = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	<-done
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// 100 at once and 10 per second get the reason.
	if said[api.CodeUnauthenticated]+said[api.CodeRateLimited] != w.o.tokens || w.o.tokens > 1000 && said[api.CodeRateLimited] < w.o.tokens/2 {
		return fmt.Errorf("%d wrong tokens were told %v", w.o.tokens, said)
	}
	return nil
}

func (w *world) wrongTokensForged(ctx context.Context) error {
	slow := 0
	for i := range 300 {
		a, err := w.once(ctx, fmt.Sprintf("bslt_key-%012x_%064x", i, i), http.MethodGet, "/v1/whoami", nil, "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i%250))
		if err != nil {
			return err
		}
		if a.Code == api.CodeRateLimited {
			slow++
		}
	}
	if slow == 0 {
		return errors.New("none of 300 was told to slow down")
	}
	return nil
}

func (w *world) sprayedLogins(ctx context.Context) error {
	const accounts, atOnce = 24, 8
	good, err := w.fresh(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for s := range atOnce {
		all.Go(func() {
			for i := s; i < accounts; i += atOnce {
				_, a, err := w.login(ctx, api.Credentials{Email: fmt.Sprintf("%s-u%d@example.com", w.tag, i), Password: "wrong password"})
				if err == nil && a.Code != api.CodeUnauthenticated && a.Code != api.CodeRateLimited {
					err = fmt.Errorf("a wrong one is told %s", a)
				}
				errs[s] = errors.Join(errs[s], err)
			}
		})
	}
	_, a, err := w.login(ctx, good) // while the wrong ones are sent
	if err == nil && !a.ok() {
		err = fmt.Errorf("the right one is told %s meanwhile", a)
	}
	all.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	_, a, err = w.login(ctx, good)
	if err == nil && !a.ok() {
		err = fmt.Errorf("the right one is told %s afterwards", a)
	}
	return err
}

// fresh creates a user who has not signed in yet.
func (w *world) fresh(ctx context.Context) (api.Credentials, error) {
	email := w.tag + "-" + word() + "@example.com"
	_, err := w.user(ctx, w.admin, email, userPassword, api.Meta{Organization: w.foe.Meta.ID}, api.Grant{Role: api.RoleAdmin, Organization: w.foe.Meta.ID})
	return api.Credentials{Email: email, Password: userPassword, Organization: w.foe.Meta.ID}, err
}

// guessedPasswords guesses passwords of an account that has not signed in from here:
// its owner has the same address, and therefore waits like the guesser.
func (w *world) guessedPasswords(ctx context.Context) error {
	c, err := w.fresh(ctx)
	if err != nil {
		return err
	}
	c.Password = "wrong password"
	var last answer
	for range 12 {
		if _, last, err = w.login(ctx, c); err != nil || last.ok() {
			return errors.Join(err, fmt.Errorf("a wrong password is told %s", last))
		}
	}
	if last.Code != api.CodeRateLimited {
		return fmt.Errorf("the twelfth wrong password is told %s", last)
	}
	return nil
}
