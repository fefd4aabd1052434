package vatcheck

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// Answer is what VIES says about a VAT number.
type Answer struct {
	Valid bool
	// Consultation is the number of the request in the records of VIES; it has one if it
	// names a requester.
	Consultation string
	// Name and Address are empty if the country does not disclose them.
	Name, Address string
}

// The most characters that are kept of an answer.
const (
	maxConsultation = 64
	maxName         = 256
	maxAddress      = 512
)

// Scope is what a failure of a request also holds for.
type Scope int

// Scopes of failures.
const (
	OfNumber    Scope = iota // only the number
	OfRequester              // all requests of the seller
	OfState                  // all numbers of the member state
	OfService                // all requests
)

// Failure is an error of a request to which VIES gave no result.
type Failure struct {
	Reason string // an error code of VIES, or what happened
	Scope  Scope
}

// Error implements error.
func (f *Failure) Error() string { return "VIES: " + f.Reason }

// codes are the error codes of VIES (the description of its REST API, and of
// checkVatService.wsdl, which has their meanings).
var codes = map[string]Scope{
	"INVALID_INPUT":                  OfNumber,
	"VAT_BLOCKED":                    OfNumber,
	"INVALID_REQUESTER_INFO":         OfRequester,
	"MS_UNAVAILABLE":                 OfState,
	"MS_MAX_CONCURRENT_REQ":          OfState,
	"MS_MAX_CONCURRENT_REQ_TIME":     OfState,
	"TIMEOUT":                        OfState,
	"SERVICE_UNAVAILABLE":            OfService,
	"SERVER_BUSY":                    OfService,
	"IP_BLOCKED":                     OfService,
	"GLOBAL_MAX_CONCURRENT_REQ":      OfService,
	"GLOBAL_MAX_CONCURRENT_REQ_TIME": OfService,
}

// failed returns the failure for an error code.
func failed(code string) *Failure {
	if scope, known := codes[code]; known {
		return &Failure{code, scope}
	}
	return &Failure{"unknown error code", OfService}
}

// response is the body of a response of POST /check-vat-number: of a result, or of an error.
type response struct {
	CountryCode       string  `json:"countryCode"`
	VATNumber         string  `json:"vatNumber"`
	Valid             *bool   `json:"valid"`
	RequestIdentifier *string `json:"requestIdentifier"`
	Name              *string `json:"name"`
	Address           *string `json:"address"`
	UserError         string  `json:"userError"`

	ActionSucceed *bool `json:"actionSucceed"`
	ErrorWrappers []struct {
		Error string `json:"error"`
	} `json:"errorWrappers"`
}

// decode returns the answer in a response about a number, or a *Failure. Errors come with
// status 200 too.
func decode(status int, body []byte, state, number string) (Answer, error) {
	var r response
	err := json.Unmarshal(body, &r)
	switch {
	case err == nil && len(r.ErrorWrappers) > 0:
		return Answer{}, failed(r.ErrorWrappers[0].Error)
	case status != http.StatusOK:
		return Answer{}, &Failure{fmt.Sprintf("status %d", status), OfService}
	case err != nil:
		return Answer{}, &Failure{"the answer is not valid JSON of the expected form", OfService}
	case r.ActionSucceed != nil && !*r.ActionSucceed:
		return Answer{}, &Failure{"the request was not successful", OfService}
	case r.UserError != "" && r.UserError != "VALID" && r.UserError != "INVALID":
		return Answer{}, failed(r.UserError)
	case r.Valid == nil:
		return Answer{}, &Failure{"the answer has no result", OfService}
	case r.UserError != "" && *r.Valid != (r.UserError == "VALID"):
		return Answer{}, &Failure{"the answer contradicts itself", OfService}
	case r.CountryCode != state || r.VATNumber != number:
		return Answer{}, &Failure{"the answer is about another number", OfService}
	}
	return Answer{Valid: *r.Valid, Consultation: clean(r.RequestIdentifier, maxConsultation),
		Name: clean(r.Name, maxName), Address: clean(r.Address, maxAddress)}, nil
}

// undisclosed is what VIES returns for a name or an address that a country keeps to itself.
const undisclosed = "---"

// clean returns a text of VIES on one line, at most most characters of it.
func clean(text *string, most int) string {
	if text == nil || *text == undisclosed {
		return ""
	}
	words := strings.FieldsFunc(strings.ToValidUTF8(*text, ""), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	runes := []rune(strings.Join(words, " "))
	return strings.TrimSpace(string(runes[:min(most, len(runes))]))
}
