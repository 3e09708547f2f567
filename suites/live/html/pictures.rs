//! Screenshots of pages, compared with those in `docs/images`.
//!
//! Machines have different fonts, so only charts are compared by their pixels, without their
//! labels. Other fonts move charts and labels: a picture therefore contains their places, and the
//! texts of the page outside its charts, which are compared as well. A script in the browser finds
//! faults of the layout: texts and charts outside the page, clipped or overlapping texts, and marks
//! that differ from their keys.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;

use super::frame::{Frame, HEIGHT, Theme};
use super::{COMPARE, Page, page, recommender, support};

/// The first command of the README, whose picture is one of the screenshots.
const README: [&str; 5] =
    ["predict", "-f", "examples/php-apache", "--load", "cpu=total:steps(0s:200m,1m:1,20m:200m)"];

/// The widths of a computer, a tablet and a phone, in pixels.
const WIDE: u32 = 1280;
const TABLET: u32 = 820;
const PHONE: u32 = 390;

/// A screenshot: the end of its name, and how it is taken.
struct Shot {
    name: &'static str,
    width: u32,
    theme: Theme,
    /// True if the panel is scrolled to.
    is_panel: bool,
}

const fn shot(name: &'static str, width: u32, theme: Theme) -> Shot {
    Shot { name, width, theme, is_panel: false }
}

/// The screenshots of each page.
const SHOTS: [Shot; 6] = [
    shot("wide", WIDE, Theme::Light),
    shot("tablet", TABLET, Theme::Light),
    shot("phone", PHONE, Theme::Light),
    shot("tablet-dark", TABLET, Theme::Dark),
    shot("phone-dark", PHONE, Theme::Dark),
    Shot { name: "phone-panel", width: PHONE, theme: Theme::Light, is_panel: true },
];

const PAGES: [&str; 3] = ["report", "comparison", "vpa"];

fn arguments(name: &str) -> Vec<&'static str> {
    match name {
        "report" => README.to_vec(),
        "comparison" => COMPARE.to_vec(),
        _ => [&["predict"], recommender::EXAMPLE].concat(),
    }
}

fn kept(name: &str) -> PathBuf {
    support::repository().join(format!("docs/images/{name}.png"))
}

/// The screenshots look as those that are kept.
pub(super) fn look_as_before(browser: &str) -> Result<(), Failed> {
    let readme = fs::read_to_string(support::repository().join("README.md"))?;
    let command = README.join(" ").replace("cpu=", "'cpu=") + "' --html page.html";
    assert!(readme.contains(&format!("cargo run -- {command}\n")), "{command}");
    for name in PAGES {
        let page = page(&arguments(name), "--html", "")?;
        for shot in &SHOTS {
            let name = format!("{name}-{}", shot.name);
            let picture = shot.take(browser, &page, "").map_err(|why| explained(&name, why))?;
            if support::updates_docs() {
                picture.write(&kept(&name))?;
            }
            let before = Picture::read(&kept(&name))?;
            picture.compare(&before, shot.background()).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    Ok(())
}

fn explained(name: &str, why: Failed) -> Failed {
    format!("{name}: {}", why.message().unwrap_or_default()).into()
}

/// Each kind of fault of a layout, and a change of a page that causes it.
const FAULTS: [(&str, &str); 5] = [
    ("outside: h1", "page.querySelector('h1').style.marginLeft = '-40px';"),
    ("outside: the page", "page.querySelector('h1').style.marginLeft = '3000px';"),
    ("overlap: ", "page.querySelector('.facts').style.marginTop = '-40px';"),
    (
        "clipped: ",
        "page.querySelector('h1').style.cssText = 'width: 20px; overflow: hidden; \
         white-space: nowrap';",
    ),
    ("color: path.l.value", "page.querySelector('path.l.value').style.stroke = 'red';"),
];

/// Each kind of fault of a layout is noticed.
pub(super) fn faults_of_layouts_are_noticed(browser: &str) -> Result<(), Failed> {
    let page = page(&README, "--html", "")?;
    for (kind, change) in FAULTS {
        let fault = shot("phone", PHONE, Theme::Light).take(browser, &page, change).err();
        let fault = fault.ok_or_else(|| format!("no fault after {change}"))?;
        let fault = fault.message().unwrap_or_default();
        assert!(fault.contains(kind), "{kind}: {fault}");
    }
    Ok(())
}

/// A text that differs from that of the kept picture is noticed.
pub(super) fn changed_texts_are_noticed() -> Result<(), Failed> {
    let kept = Picture::read(&kept("report-wide"))?;
    let mut changed = kept.clone();
    changed.texts[0].push('!');
    let background = SHOTS[0].background();
    let difference = changed.compare(&kept, background).err().unwrap_or_default();
    assert!(difference.contains("Prediction!"), "{difference}");
    Ok(())
}

/// Without any one of its charts, a page does not look as before.
pub(super) fn hidden_charts_are_noticed(browser: &str) -> Result<(), Failed> {
    let page = page(&README, "--html", "")?;
    let shot = shot("tablet", TABLET, Theme::Light);
    let kept = Picture::read(&kept("report-tablet"))?;
    let count = kept.charts.iter().filter(|chart| chart.is_visible()).count();
    assert!(count >= 5, "replicas, cpu, pods, limits and events: {count}");
    for hidden in 0..count {
        let hide = format!(
            "const shown = page.querySelectorAll('.plot, .strip')[{hidden}]; \
             for (const it of shown.querySelectorAll('path:not(.g), .seg')) \
             it.style.visibility = 'hidden';"
        );
        let picture = shot.take(browser, &page, &hide)?;
        let difference = picture.compare(&kept, shot.background()).err();
        let difference = difference.ok_or_else(|| format!("without chart {hidden}"))?;
        assert!(difference.starts_with(&format!("chart {hidden} ")), "{hidden}: {difference}");
    }
    Ok(())
}

/// In each of the kept pictures, a chart that is painted over is noticed.
pub(super) fn blanked_charts_are_noticed() -> Result<(), Failed> {
    for (name, shot) in PAGES.iter().flat_map(|page| SHOTS.iter().map(move |shot| (page, shot))) {
        let name = format!("{name}-{}", shot.name);
        let picture = Picture::read(&kept(&name))?;
        let background = shot.background();
        picture.compare(&picture, background)?;
        let visible: Vec<Area> = picture.charts.iter().copied().filter(Area::is_visible).collect();
        assert!(!visible.is_empty() || shot.is_panel, "{name} has no charts");
        for chart in visible {
            let mut blanked = picture.clone();
            blanked.fill(chart, background);
            assert!(blanked.compare(&picture, background).is_err(), "{name}: {chart:?}");
        }
    }
    Ok(())
}

impl Shot {
    /// The color of the card below the charts.
    fn background(&self) -> [u8; 3] {
        match self.theme {
            Theme::Light => [0xff; 3],
            Theme::Dark => [0x1a, 0x20, 0x27],
        }
    }

    /// Takes the screenshot after a script that changes the page. Faults of the layout are errors.
    fn take(&self, browser: &str, page: &Page, change: &str) -> Result<Picture, Failed> {
        let scroll = match self.is_panel {
            true => {
                "view.scrollTo(0, page.querySelector('.why').getBoundingClientRect().top - 120);"
            }
            false => "",
        };
        let script = format!(
            "{scroll}
            {change}
            {LAYOUT}
            const charts = [...page.querySelectorAll('.plot, .strip')];
            // The head of the panel is above the charts.
            const head = page.querySelector('.panel .head').getBoundingClientRect();
            const isCovered = (box) => box.top < head.bottom && box.bottom > head.top;
            seen.charts = charts.map((chart) => {{
              const box = chart.getBoundingClientRect();
              const isVisible = box.top >= 0 && box.bottom <= {HEIGHT} && !isCovered(box);
              return isVisible && box.width ? [box.left, box.top, box.width, box.height] : [0, 0, 0, 0];
            }});"
        );
        let frame = Frame { browser, page, width: self.width, theme: self.theme, script };
        let shown = frame.show()?;
        let faults: Vec<String> = serde_json::from_value(shown.seen["faults"].clone())?;
        if !faults.is_empty() {
            return Err(format!("the layout has faults: {}", faults.join("; ")).into());
        }
        assert!(shown.seen["marks"].as_u64() >= Some(5), "{} marks", shown.seen["marks"]);
        let charts: Vec<[f64; 4]> = serde_json::from_value(shown.seen["charts"].clone())?;
        let charts = charts.into_iter().map(|chart| {
            let [left, top, width, height] = chart.map(|length| length.round() as usize);
            Area { left, top, width, height }
        });
        let labels: Vec<[f64; 4]> = serde_json::from_value(shown.seen["labels"].clone())?;
        let mut picture = Picture::read(&shown.picture)?;
        picture.crop(self.width as usize);
        picture.charts = charts.collect();
        picture.labels = labels.into_iter().map(Area::around).collect();
        let texts: Vec<String> = serde_json::from_value(shown.seen["texts"].clone())?;
        let version = env!("CARGO_PKG_VERSION");
        picture.texts = texts.iter().map(|text| text.replace(version, "VERSION")).collect();
        Ok(picture)
    }
}

/// The place of a chart or of a label in a picture, in pixels; empty if it is not visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Area {
    /// The area of a box with fractions of pixels; it contains the whole box.
    fn around([left, top, width, height]: [f64; 4]) -> Area {
        let (right, bottom) = ((left + width).ceil(), (top + height).ceil());
        let (left, top) = (left.max(0.0).floor(), top.max(0.0).floor());
        let [width, height] = [right - left, bottom - top].map(|length| length.max(0.0) as usize);
        Area { left: left as usize, top: top as usize, width, height }
    }

    fn is_visible(&self) -> bool {
        self.width > 0
    }

    /// The part of the other area that is in this one, relative to the corner of this one.
    fn part(&self, other: &Area) -> Option<Area> {
        let (left, top) = (other.left.max(self.left), other.top.max(self.top));
        let right = (other.left + other.width).min(self.left + self.width);
        let bottom = (other.top + other.height).min(self.top + self.height);
        let (width, height) = (right.checked_sub(left)?, bottom.checked_sub(top)?);
        Some(Area { left: left - self.left, top: top - self.top, width, height })
    }

    /// The place in the picture of a part of this area.
    fn place(&self, part: &Area) -> Area {
        let width = part.width.min(self.width.saturating_sub(part.left));
        let height = part.height.min(self.height.saturating_sub(part.top));
        Area { left: self.left + part.left, top: self.top + part.top, width, height }
    }
}

#[derive(Clone, Debug)]
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
    charts: Vec<Area>,
    /// The texts in charts.
    labels: Vec<Area>,
    /// The texts of the page outside its charts.
    texts: Vec<String>,
}

/// The keys under which the places of charts and labels, and the texts, are stored.
const CHARTS: &str = "charts";
const LABELS: &str = "labels";
const TEXTS: &str = "texts";

/// The command that takes the pictures again.
const UPDATE: &str = "cargo xtask docs --images";

/// The script that finds faults of the layout.
const LAYOUT: &str = include_str!("layout.js");

/// The size of a field of a chart, in pixels.
const CHART_FIELD: [usize; 2] = [10, 5];

/// The largest difference of a chart, as a part of everything that is drawn in it.
const MOST: f64 = 0.25;

impl Picture {
    fn read(path: &Path) -> Result<Picture, Failed> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut reader = png::Decoder::new(BufReader::new(file)).read_info()?;
        let areas = |key: &str| -> Result<Vec<Area>, Failed> {
            let mut texts = reader.info().uncompressed_latin1_text.iter();
            let Some(stored) = texts.find(|text| text.keyword == key) else {
                return Ok(Vec::new());
            };
            let areas: Vec<[usize; 4]> = serde_json::from_str(&stored.text)?;
            let areas = areas.into_iter();
            Ok(areas.map(|[left, top, width, height]| Area { left, top, width, height }).collect())
        };
        let (charts, labels) = (areas(CHARTS)?, areas(LABELS)?);
        let texts = reader.info().utf8_text.iter().find(|text| text.keyword == TEXTS);
        let texts = texts.map(|text| text.get_text()).transpose()?;
        let texts = texts.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
        let mut bytes = vec![0; reader.output_buffer_size().ok_or("the size")?];
        let info = reader.next_frame(&mut bytes)?;
        let pixels = bytes.chunks_exact(info.color_type.samples()).map(|it| [it[0], it[1], it[2]]);
        let (width, height) = (info.width as usize, info.height as usize);
        let pixels = pixels.take(width * height).collect();
        Ok(Picture { width, height, pixels, charts, labels, texts })
    }

    fn write(&self, path: &Path) -> Result<(), Failed> {
        let file = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        for (key, areas) in [(CHARTS, &self.charts), (LABELS, &self.labels)] {
            let areas = areas.iter().map(|area| [area.left, area.top, area.width, area.height]);
            let areas = serde_json::to_string(&areas.collect::<Vec<_>>())?;
            encoder.add_text_chunk(key.to_owned(), areas)?;
        }
        encoder.add_itxt_chunk(TEXTS.to_owned(), serde_json::to_string(&self.texts)?)?;
        encoder.write_header()?.write_image_data(self.pixels.as_flattened())?;
        Ok(())
    }

    fn crop(&mut self, width: usize) {
        let rows = self.pixels.chunks(self.width);
        self.pixels = rows.flat_map(|row| row[..width].to_vec()).collect();
        self.width = width;
    }

    fn fill(&mut self, area: Area, color: [u8; 3]) {
        for y in area.top..area.top + area.height {
            let begin = y * self.width + area.left;
            self.pixels[begin..begin + area.width].fill(color);
        }
    }

    /// The labels of a chart, relative to its corner.
    fn labels_of(&self, chart: Area) -> impl Iterator<Item = Area> {
        self.labels.iter().filter_map(move |label| chart.part(label))
    }

    /// The mean color of fields of a part of the picture, from 0 to 1.
    fn fields(&self, part: Area, field: [usize; 2]) -> Vec<[f64; 3]> {
        let Area { left, top, width, height } = part;
        let (columns, rows) = (width.div_ceil(field[0]), height.div_ceil(field[1]));
        let mut sums = vec![([0.0; 3], 0.0); columns * rows];
        for y in 0..height {
            for x in 0..width {
                let pixel = self.pixels[(top + y) * self.width + left + x];
                let (sum, count) = &mut sums[y / field[1] * columns + x / field[0]];
                for (sum, value) in sum.iter_mut().zip(pixel) {
                    *sum += f64::from(value) / 255.0;
                }
                *count += 1.0;
            }
        }
        sums.into_iter().map(|(sum, count): ([f64; 3], f64)| sum.map(|it| it / count)).collect()
    }

    /// Compares with a picture that is kept. `background` is the color behind the charts.
    fn compare(&self, kept: &Picture, background: [u8; 3]) -> Result<(), String> {
        if (self.width, self.height) != (kept.width, kept.height) {
            return Err(format!(
                "{}x{}, not {}x{}",
                self.width, self.height, kept.width, kept.height
            ));
        }
        if self.charts.len() != kept.charts.len() {
            return Err(format!("{} charts, not {}", self.charts.len(), kept.charts.len()));
        }
        for (index, (one, other)) in self.charts.iter().zip(&kept.charts).enumerate() {
            if !one.is_visible() || !other.is_visible() {
                continue;
            }
            if one.width.abs_diff(other.width) > 1 || one.height.abs_diff(other.height) > 1 {
                return Err(format!("chart {index} has another size: {one:?}, {other:?}"));
            }
            let (width, height) = (one.width.min(other.width), one.height.min(other.height));
            let [one, other] = [one, other].map(|chart| Area { width, height, ..*chart });
            let labels: Vec<Area> = self.labels_of(one).chain(kept.labels_of(other)).collect();
            let [shown, kept] = [(self, one), (kept, other)].map(|(picture, chart)| {
                let mut picture = picture.clone();
                for label in &labels {
                    picture.fill(chart.place(label), background);
                }
                picture.fields(chart, CHART_FIELD)
            });
            let background = background.map(|channel| f64::from(channel) / 255.0);
            let difference = difference(&shown, &kept, background);
            if difference > MOST {
                return Err(format!("chart {index} differs by {:.0}%", difference * 100.0));
            }
        }
        let mut pairs = self.texts.iter().zip(&kept.texts);
        match pairs.find(|(shown, kept)| shown != kept) {
            Some((shown, kept)) => Err(format!("\"{shown}\", not \"{kept}\": run `{UPDATE}`")),
            None if self.texts.len() != kept.texts.len() => {
                let (shown, kept) = (self.texts.len(), kept.texts.len());
                Err(format!("{shown} texts, not {kept}: run `{UPDATE}`"))
            }
            None => Ok(()),
        }
    }
}

/// The mean distance of the channels of two colors.
fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum::<f64>() / 3.0
}

/// The difference of two charts, as a part of what is drawn in the second one.
fn difference(one: &[[f64; 3]], other: &[[f64; 3]], background: [f64; 3]) -> f64 {
    let drawn: f64 = other.iter().map(|color| distance(*color, background)).sum();
    let differs: f64 = one.iter().zip(other).map(|(one, other)| distance(*one, *other)).sum();
    differs / drawn.max(f64::MIN_POSITIVE)
}
