// Package viestest is a stand-in for the REST API of VIES according to its description
// (ec.europa.eu/taxation_customs/vies): POST /check-vat-number, with the error codes of
// checkVatService.wsdl. It can be slow, drop connections, and answer nonsense.
package viestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Business is who has a VAT number. "---" is what VIES answers for countries that do not
// disclose it.
type Business struct{ Name, Address string }

// Ask is a request that the service has received.
type Ask struct {
	CountryCode              string `json:"countryCode"`
	VATNumber                string `json:"vatNumber"`
	RequesterMemberStateCode string `json:"requesterMemberStateCode"`
	RequesterNumber          string `json:"requesterNumber"`
}

// Number returns the number that was asked about, with its prefix.
func (a Ask) Number() string { return a.CountryCode + a.VATNumber }

// VIES is the stand-in.
type VIES struct {
	URL string

	mu       sync.Mutex
	known    map[string]Business
	fault    func(Ask) string
	asked    []Ask
	requests int
}

// Faults that are no error codes.
const (
	Hang     = "hang"     // no response until the client gives up
	Drop     = "drop"     // the connection ends
	Garbage  = "garbage"  // HTML with status 200
	Huge     = "huge"     // an endless body
	Types    = "types"    // values of other types
	Other    = "other"    // the answer is about another number
	Empty    = "empty"    // an object without a result
	Both     = "both"     // valid, and not
	Down     = "down"     // status 503 and HTML
	Busy     = "busy"     // status 429 without a body
	Redirect = "redirect" // to another address
)

// New starts a service that knows these numbers, with their prefixes.
func New(t testing.TB, known map[string]Business) *VIES {
	v := &VIES{known: known}
	s := httptest.NewServer(v)
	t.Cleanup(s.Close)
	v.URL = s.URL
	return v
}

// Fail makes requests fail with an error code or one of the faults; "" answers.
func (v *VIES) Fail(fault func(Ask) string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fault = fault
}

// Know adds or replaces a number; without a name, it is no longer valid.
func (v *VIES) Know(number string, b Business) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known[number] = b; b.Name == "" {
		delete(v.known, number)
	}
}

// Asked returns the requests since the last call.
func (v *VIES) Asked() []Ask {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := v.asked
	v.asked = nil
	return out
}

// ServeHTTP implements http.Handler.
func (v *VIES) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ask Ask
	if r.Method != http.MethodPost || r.URL.Path != "/check-vat-number" || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "want POST /check-vat-number with JSON", http.StatusNotFound)
		return
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&ask); err != nil {
		refuse(w, "INVALID_INPUT")
		return
	}
	v.mu.Lock()
	v.asked = append(v.asked, ask)
	v.requests++
	id := fmt.Sprintf("WAPIAAAA%08d", v.requests)
	b, valid := v.known[ask.Number()]
	fault := ""
	if v.fault != nil {
		fault = v.fault(ask)
	}
	v.mu.Unlock()
	if fault != "" {
		fail(w, r, fault, ask)
		return
	}
	if ask.RequesterNumber == "" {
		id = ""
	}
	if !valid {
		b = Business{"---", "---"}
	}
	reply(w, http.StatusOK, map[string]any{"countryCode": ask.CountryCode, "vatNumber": ask.VATNumber, "requestDate": "2026-03-01T10:00:00.000Z", "valid": valid,
		"requestIdentifier": id, "name": b.Name, "address": b.Address, "traderName": "---", "traderNameMatch": "NOT_PROCESSED"})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// refuse answers with an error code, which VIES does with status 200 as well.
func refuse(w http.ResponseWriter, code string) {
	status := http.StatusOK
	if code == "INVALID_INPUT" {
		status = http.StatusBadRequest
	}
	reply(w, status, map[string]any{"actionSucceed": false, "errorWrappers": []any{map[string]string{"error": code}}})
}

func fail(w http.ResponseWriter, r *http.Request, fault string, ask Ask) {
	of := map[string]any{"countryCode": ask.CountryCode, "vatNumber": ask.VATNumber}
	with := func(more map[string]any) map[string]any {
		for k, x := range more {
			of[k] = x
		}
		return of
	}
	switch fault {
	case Hang:
		<-r.Context().Done()
	case Drop:
		panic(http.ErrAbortHandler)
	case Garbage:
		_, _ = w.Write([]byte("<html>maintenance</html>"))
	case Huge:
		_, _ = w.Write([]byte(`{"name":"`))
		for chunk := []byte(strings.Repeat("x", 64<<10)); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	case Types:
		reply(w, http.StatusOK, with(map[string]any{"valid": "yes", "name": []int{1}}))
	case Other:
		reply(w, http.StatusOK, map[string]any{"countryCode": "XX", "vatNumber": "1", "valid": true})
	case Empty:
		reply(w, http.StatusOK, map[string]any{})
	case Both:
		reply(w, http.StatusOK, with(map[string]any{"valid": true, "userError": "INVALID"}))
	case Down:
		http.Error(w, "<html>no</html>", http.StatusServiceUnavailable)
	case Busy:
		w.WriteHeader(http.StatusTooManyRequests)
	case Redirect:
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
	default:
		refuse(w, fault)
	}
}
