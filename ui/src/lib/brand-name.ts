// How the brands of payment cards are written.
const names: Record<string, string> = {
  amex: 'American Express',
  diners: 'Diners Club',
  discover: 'Discover',
  jcb: 'JCB',
  mastercard: 'Mastercard',
  unionpay: 'UnionPay',
  visa: 'Visa',
};

/** brandName returns the name of a brand as a provider reports it; empty if there is none. */
export const brandName = (brand = '') => names[brand] ?? brand;
