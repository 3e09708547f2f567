//! Logarithm, powers, amounts and times.

use super::super::float::{MAX_AMOUNT, amount, exp2, ldexp, ln, millicores, pow, round, scale};
use super::super::time::GoTime;
use crate::time::Span;

/// The bits that Go computes on amd64.
#[test]
fn functions_have_go_s_bits() {
    for (x, bits) in [
        (3.0, 0x3ff1_93ea_7aad_030a),
        (0.7, 0xbfd6_d3c3_24e1_3f50),
        (1e7, 0x4030_1e3b_843e_aa73),
        (1.05, 0x3fa8_fb06_3ef2_c7f0),
        (1e-5, 0xc027_069e_2aa2_aa5b),
    ] {
        assert_eq!(ln(x).to_bits(), bits, "ln({x})");
    }
    for (x, bits) in [
        (0.5, 0x3ff6_a09e_667f_3bcc),
        (0.1, 0x3ff1_25fb_ee25_0664),
        (-3.7, 0x3fb3_b2c4_7bff_8328),
        (12.34, 0x40b4_4089_fc7c_c77c),
    ] {
        assert_eq!(exp2(x).to_bits(), bits, "exp2({x})");
    }
    assert_eq!(pow(1.05, 175).to_bits(), 0x40b3_f28c_0b1c_2558);
    assert_eq!(pow(1.0123, -2).to_bits(), 0x3fef_3a22_8588_0b80);
}

#[test]
fn powers_of_two_are_exact_and_limited() {
    for n in [-1074, -1073, -1022, -1, 0, 1, 10, 1023] {
        assert_eq!(exp2(f64::from(n)), f64::from(n).exp2(), "{n}");
    }
    assert_eq!(exp2(1024.0), f64::INFINITY);
    assert_eq!(exp2(-1074.5), 0.0);
    assert_eq!(ldexp(1.0, -1080), 0.0);
    assert_eq!(ldexp(0.75, 3), 6.0);
    assert_eq!(ldexp(1.0, 5000), f64::INFINITY);
}

#[test]
fn integer_powers_have_go_s_special_cases() {
    assert_eq!(pow(1.05, 0), 1.0);
    assert_eq!(pow(1.05, 1), 1.05);
    assert_eq!(pow(f64::INFINITY, -2), 0.0);
    assert_eq!(pow(f64::INFINITY, 1), f64::INFINITY);
    assert_eq!(pow(2.0, -2), 0.25);
    assert_eq!(pow(1.5, 3), 3.375);
}

#[test]
fn amounts_are_truncated_and_limited() {
    assert_eq!(amount(2.999), 2);
    assert_eq!(amount(-5.0), 0);
    assert_eq!(amount(1e15), MAX_AMOUNT);
    assert_eq!(amount(f64::INFINITY), MAX_AMOUNT);
    assert_eq!(amount(f64::NAN), i64::MIN);
    assert_eq!(millicores(0.0251), 25);
    assert_eq!(scale(1000, 0.15), 150);
    assert_eq!([round(0.5), round(-0.5), round(-1.5), round(2.4)], [1, 0, -1, 2]);
}

#[test]
fn times_are_rounded_to_multiples_of_a_span_since_the_year_1() {
    let day = Span::from_mins(24 * 60);
    let at = |text: &str| GoTime::from_timestamp(text.parse().expect("a timestamp"));
    let midnight = at("2000-01-01T00:00:00Z");
    assert_eq!(at("2000-01-01T11:59:59Z").round(day), midnight);
    assert_eq!(at("2000-01-01T12:00:00Z").round(day), midnight.plus(day));
    assert_eq!(GoTime::ZERO.since(midnight), Span(i64::MIN));
    assert_eq!(midnight.to_string(), "2000-01-01T00:00:00Z");
    assert_eq!(midnight.go_text(), "2000-01-01 00:00:00 +0000 UTC");
}
