//! Quantities as k8s.io/apimachinery v0.37.0 parses, prints and rounds them.

use super::*;

/// The text, the stored text and the milli-value.
const PARSED: &[(&str, &str, i64)] = &[
    ("0", "0", 0),
    ("-0", "0", 0),
    (".", "0", 0),
    ("5", "5", 5_000),
    ("+5", "+5", 5_000),
    ("5.", "5.", 5_000),
    (".5", "500m", 500),
    ("0.3", "300m", 300),
    ("00500m", "00500m", 500),
    ("1000m", "1", 1_000),
    ("1500m", "1500m", 1_500),
    ("1e3", "1e3", 1_000_000),
    ("1E3", "1E3", 1_000_000),
    ("1Ki", "1Ki", 1_024_000),
    ("1000Ki", "1000Ki", 1_024_000_000),
    ("1024Ki", "1Mi", 1_048_576_000),
    ("0.5Gi", "512Mi", 536_870_912_000),
    ("1.5Gi", "1536Mi", 1_610_612_736_000),
    ("0.001Ki", "1024m", 1_024),
    ("-.5Ki", "-512", -512_000),
    // Rounded away from zero.
    ("1n", "1n", 1),
    ("1500u", "1500u", 2),
    ("-1500u", "-1500u", -2),
    ("1.0005", "1000500u", 1_001),
    ("0.1234567891234", "123456790n", 124),
    ("-0.1234567891234", "-123456790n", -124),
    ("0.0000000001Ki", "103n", 1),
    // Overflow is not an error: the result is 0 or the wrapped product.
    ("9223372036854775", "9223372036854775", 9_223_372_036_854_775_000),
    ("9223372036854776", "9223372036854776", -9_223_372_036_854_775_616),
    ("9.3P", "9300T", 0),
    ("10P", "10P", 0),
    ("10000000000000000", "10P", 0),
    ("8Ei", "9223372036854775807", -1_000),
    ("9223372036854775808", "9223372036854775808", 0),
    ("1234567890123456789012n", "1234567890123456789012n", 1_234_567_890_123_457),
    ("-123456789012345678901234567890", "-123456789012345678901234567890", 6_134_004_772_462),
    ("1e1000", "10e999", 0),
    // Upstream prints no suffix beyond E.
    ("1000E", "1", 1_000),
];

#[test]
fn quantities_are_parsed_and_rounded_as_upstream() {
    for (text, stored, milli) in PARSED {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!((quantity.to_string().as_str(), quantity.milli()), (*stored, *milli), "{text}");
        assert_eq!(Quantity::parse(stored), Ok(quantity), "{text}");
    }
}

#[test]
fn invalid_quantities_are_rejected() {
    for (text, error) in [
        ("", QuantityError::FormatWrong),
        ("1..2", QuantityError::FormatWrong),
        ("1 ", QuantityError::FormatWrong),
        ("1_000", QuantityError::FormatWrong),
        ("1x", QuantityError::FormatWrong),
        ("1mm", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1Kii", QuantityError::Suffix),
        ("Pi", QuantityError::Numeric),
        ("1234567890123456789e99999", QuantityError::TooLarge),
    ] {
        assert_eq!(Quantity::parse(text), Err(error), "{text:?}");
    }
}

/// The time to parse digits is quadratic in their number.
#[test]
fn a_quantity_with_too_many_digits_is_not_parsed() {
    let nines = |count| "9".repeat(count);
    let (most, millions) = (nines(4000), nines(3_000_000));
    let zeros = "0".repeat(3_000_000);
    for accepted in [
        format!("{most}.{most}"),
        format!("-{most}.5Gi"),
        format!("{zeros}{most}"),
        format!("{zeros}.5"),
        format!("{most}e4000"),
    ] {
        assert!(Quantity::parse(&accepted).is_ok(), "{accepted:.10}");
    }
    for refused in [
        millions.clone(),
        format!("-{millions}"),
        format!("{millions}.5"),
        format!("0.{millions}"),
        format!("0.{millions}e3000000"),
        format!("{millions}Gi"),
        format!("{millions}e-3000000"),
    ] {
        assert_eq!(Quantity::parse(&refused), Err(QuantityError::TooLarge), "{refused:.10}");
    }
}

#[test]
fn computed_quantities_are_printed_in_their_format() {
    for (milli, decimal, binary) in [
        (0, "0", "0"),
        (500, "500m", "500m"),
        (1_536_000, "1536", "1536"),
        (1_024_000, "1024", "1Ki"),
        (104_857_600_000, "104857600", "100Mi"),
        (104_857_600_500, "104857600500m", "104857600500m"),
        (1_500_000_000, "1500k", "1500000"),
        (-2_048_000, "-2048", "-2Ki"),
        (i64::MIN, "-9223372036854775808m", "-9223372036854775808m"),
    ] {
        assert_eq!(Quantity::from_milli(milli, Format::DecimalSI).to_string(), decimal);
        assert_eq!(Quantity::from_milli(milli, Format::BinarySI).to_string(), binary);
        assert_eq!(Quantity::from_milli(milli, Format::BinarySI).milli(), milli);
    }
}

#[test]
fn quantities_are_equal_by_value() {
    let quantity = |text: &str| Quantity::parse(text).unwrap();
    for (a, b) in [("1", "1000m"), ("1Ki", "1024"), ("1e0", "1"), ("1G", "1000M"), ("+5", "5")] {
        assert_eq!(quantity(a), quantity(b));
    }
    assert_ne!(quantity("1"), quantity("1001m"));
    assert_ne!(quantity("1"), quantity("-1"));
    let big = "123456789012345678901234567890";
    assert_eq!(quantity(big), quantity(&format!("{big}.0")));
    assert_ne!(quantity(big), quantity("1"));
    assert_eq!(Quantity::from_milli(2_000, Format::DecimalSI), quantity("2"));
    assert_eq!(Quantity::from_milli(i64::MAX, Format::DecimalSI), quantity("9223372036854775807m"));
}

#[test]
fn tolerances_are_products_rather_than_the_nearest_double() {
    for (text, float) in
        [("0.3", 300.0 * 0.001), ("0.05", 50.0 * 0.001), ("1", 1.0), ("1k", 1e3), ("0", 0.0)]
    {
        assert_eq!(Quantity::parse(text).unwrap().approx_f64().to_bits(), f64::to_bits(float));
    }
    assert_eq!(Quantity::parse("1e1000").unwrap().approx_f64(), f64::INFINITY);
}

#[test]
fn quantities_may_be_numbers_in_json() {
    for (json, printed) in [
        ("\"500m\"", "500m"),
        ("\" 1Gi \"", "1Gi"),
        ("5", "5"),
        ("-5", "-5"),
        ("0.5", "500m"),
        // From YAML: through a float, with an exponent.
        ("0.0000001", "100e-9"),
        ("1e21", "1e21"),
    ] {
        let quantity: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(quantity.to_string(), printed, "{json}");
    }
    assert!(serde_json::from_str::<Quantity>("\"abc\"").is_err());
    assert!(serde_json::from_str::<Quantity>("true").is_err());
    let json = serde_json::to_string(&Quantity::parse("0.5").unwrap()).unwrap();
    assert_eq!(json, "\"500m\"");
}

#[test]
fn short_numbers_are_read_again_like_all_others() {
    let powers = (0..19).map(|power| 10_i64.pow(power));
    let around = powers.flat_map(|it| [it - 1, it, it + 1, it.saturating_mul(37) / 10]);
    for milli in around.flat_map(|it| [it, -it]) {
        let quantity = Quantity::from_milli(milli, Format::DecimalSI);
        let by_text = Quantity::parse(&quantity.to_string()).expect("a quantity");
        assert_eq!(format!("{:?}", quantity.read_again()), format!("{by_text:?}"));
    }
}
