// Package vatcheck verifies VAT numbers of customers with VIES, the service of the EU that
// asks the tax authority of a number's country (ec.europa.eu/taxation_customs/vies, REST
// API). The leader does this for the sellers whose tax settings want it:
//
//	tax settings, organizations ─► Plan (pure) ─► one VATCheck for each number
//	                                             ─► due ─► VIES ─► VATCheck.status
//
// An answer is Valid or Invalid, with the consultation number that proves to a tax
// authority that the seller has asked. Everything else (VIES or a country's service is
// away, slow, busy, or answers nonsense) leaves the last answer as it is, and is tried
// again after growing delays. Nothing waits for an answer: an invoice has the tax that
// follows from what is known when it is issued (billing/tax).
package vatcheck
