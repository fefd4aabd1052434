// Package pricebook turns the price books of the API into what package tariff
// calculates with. It is pure.
package pricebook
