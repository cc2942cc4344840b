"""The sentences of the built-in corpus: two small grammars with agreement, and a fixed split."""

import hashlib
import random
import re
from collections.abc import Iterator

from myxtts.errors import UserError

HELD_OUT_SHARE = 8  # one combination in eight is never in a corpus


def corpus_sentences(language: str, count: int, seed: int = 0) -> list[str]:
    """Return `count` distinct sentences for a corpus; a smaller count gives the first of them."""
    return _distinct(language, count, f"corpus-{language}-{seed}", held_out=False)


def held_out_sentences(language: str, count: int, seed: int = 0) -> list[str]:
    """Return `count` distinct sentences that no corpus of any seed contains."""
    return _distinct(language, count, f"held-out-{language}-{seed}", held_out=True)


def check_language(language: str) -> None:
    """Raise where there is no built-in corpus in a language."""
    if language not in GRAMMARS:
        raise UserError(
            f"There is no built-in corpus for language {language!r}; "
            f"there is one for {' and for '.join(GRAMMARS)}."
        )


def _distinct(language: str, count: int, stream: str, held_out: bool) -> list[str]:
    composed = _compose(language, stream)
    sentences: dict[str, None] = {}
    draws_left = 1000 + 40 * count
    while len(sentences) < count and draws_left:
        sentence = next(composed)
        if _is_held_out(sentence) == held_out:
            sentences[sentence] = None
        draws_left -= 1
    if len(sentences) < count:
        raise UserError(
            f"The built-in grammar for {language!r} gave only {len(sentences)} distinct sentences "
            f"of the {count} asked for. Ask for fewer clauses or fewer speakers."
        )
    return list(sentences)


def _is_held_out(sentence: str) -> bool:
    """Decide by the sentence alone, so that no seed can move it across the split."""
    return hashlib.sha256(sentence.encode("utf-8")).digest()[0] % HELD_OUT_SHARE == 0


def _compose(language: str, stream: str) -> Iterator[str]:
    """Yield an endless stream of sentences, each with one agreement of subject and verb."""
    rules, agreements = _grammar(language)
    # Only Random.random() is promised to give the same numbers in every version of Python.
    rng = random.Random(stream)
    while True:
        sentence = _expand("{sentence}", rules | _pick(agreements, rng), rng)
        yield sentence[0].upper() + sentence[1:]


def _expand(text: str, rules: dict[str, list[str]], rng: random.Random) -> str:
    """Replace every {name} by one of that name's alternatives, down to plain words."""
    return re.sub(r"\{(\w+)\}", lambda name: _expand(_pick(rules[name[1]], rng), rules, rng), text)


def _pick(alternatives: list, rng: random.Random):
    return alternatives[int(rng.random() * len(alternatives))]


def _grammar(language: str) -> tuple[dict[str, list[str]], list[dict[str, list[str]]]]:
    """Return the rules of a language, and one set of rules per agreement."""
    check_language(language)
    rules, agreements = GRAMMARS[language]
    return _parse(rules), [_parse(agreement) for agreement in agreements]


def _parse(text: str) -> dict[str, list[str]]:
    """Read rules written as `name: alternative; alternative`; indented lines continue a rule."""
    rules = re.sub(r"\s*\n\s+", " ", text.strip())
    named = (rule.split(":", 1) for rule in rules.splitlines())
    return {name: [choice.strip() for choice in choices.split(";")] for name, choices in named}


# Spellings that British and American English share, and no number words: otherwise an
# ASR that writes "neighbor" or "2" would be counted wrong.
ENGLISH = """
sentence: {subject} bought {goods}.; {subject} sold {thing} {past}.;
    {subject} left {thing} {spot}.; {subject} lost {thing}.; {thing} is {spot}.;
    {subject} {usually} {habit}.; {subject} {habit} {often}.;
    {subject} {is} {feeling} about {event}.; {subject} {is} {doing}.;
    {subject} {was} {doing} when {interruption}.; {interruption}.;
    {subject} walked {along}.; {subject} drove to {place} {past}.;
    {subject} will {task}.; {subject} would rather {plan}.;
    {subject} heard {noise} {outside}.; {subject} {has} never seen {sight}.;
    we saw {sight}.; why did {subject} buy {goods}?; did you enjoy {event}?;
    please {task} {future}.; could you {task}, please?; have you seen {thing}?;
    {scene} was {state}.; {scene} looked {look} in {light}.; the {dish} tasted {taste}.;
    if {condition}, we will {plan}.; {opinion} {thing} is too {size}.;
    {thing} is too {size} for {holder}.; where did {subject} find {thing}?
goods: a bunch of yellow flowers; fresh bread and cheese; a bag of ripe cherries;
    some orange juice; a pair of leather shoes; a jar of honey; a television;
    a thick wool jacket; some fish and potatoes; a cheap blue bicycle; a box of chocolates;
    the evening paper; a beige sofa; some olive oil; a toy train; a kitchen chair
thing: the blue umbrella; the garage key; the leather bag; the old photograph; the silver watch;
    the green jacket; the wooden box; the birthday gift; the long letter; the treasure map;
    the measuring tape; the coffee cup; the boy's hat; the thick book; the purple scarf;
    the bag of coins; the toy boat; the fishing pole
spot: under the table; on the kitchen chair; beside the front door; behind the sofa;
    in the garden; near the fire; on the upper shelf; at the station; in the car;
    between the pillows; by the swimming pool; in the garage; at the church; on the bus
usually: usually; always; often; never; rarely
often: every morning; after lunch; in the evening; on Thursday; before breakfast;
    during the winter; without any trouble; with great pleasure; on the way home;
    in the summer; all year round; on the usual day
past: yesterday; last night; this morning; last week; on Friday; after the storm;
    before dinner; a month ago; last year; in January; during the holiday; on Thursday evening
future: tomorrow; tonight; before lunch; as soon as possible; after the meeting; next month;
    on Saturday; before the guests arrive; this afternoon; later today; on Thursday
feeling: very happy; rather nervous; quite sure; a little worried; really excited; still angry;
    so proud; curious; full of joy
event: the wedding; the school play; the long journey; the football match; the museum tour;
    the job in the city; the music lesson; the birthday party; the doctor's visit;
    the final decision; the television show; the boat trip; the good weather
doing: cooking rice; reading a book; washing the dishes; watching television;
    singing in the bath; painting the fence; walking home; looking for the cat;
    playing the violin; choosing a gift; pouring the tea; boiling the eggs
interruption: the phone rang; the lights went out; the snow began; a dog started barking;
    the guests arrived; the baby woke up; someone knocked on the door;
    the thunder shook the house; the church bell rang; a noise came from above
along: through the forest; along the river; across the narrow bridge; around the lake;
    up the steep hill; down the quiet street; past the old church; over the fields;
    into the valley; beside the northern road
place: the village; the airport; the seaside; the north; the hospital; the farm; the cinema;
    the job fair; the mountains; the other side of town; the zoo; the shopping mall
task: close the window; turn down the noise; bring a chair; wash the cups; measure the table;
    feed the horses; join the choir; call the doctor; fix the garage door;
    speak to the teacher; put the shirts away; pour the tea; share the cake; check the oil;
    choose a good film; water the roses; push the car; explain the problem
noise: a loud noise; a strange voice; some gentle music; the song of a bird; heavy footsteps;
    the sound of thunder; a baby crying; a sudden crash; the rush of water; a quiet laugh;
    an owl; an explosion
outside: near the house; in the street; outside the window; behind the trees; by the port;
    in the tall grass; beyond the hills; down in the valley; on the other side
sight: a huge brown bear; a fox with a white tail; a tiny mouse; a large crowd;
    a very unusual bird; a young deer; a boy on a huge bicycle; a queen in a yellow dress;
    a goose with blue eyes; a thin white sheep; a judge with a sword; a poor old horse
scene: the old bridge; the village square; the beach; the forest; the garden; the valley;
    the northern road; the football field; the path to the church; our street
state: covered with snow; full of people; very quiet; hidden in thick fog; almost empty;
    full of noise; too dark to see; a pleasure to watch; red and gold; under water
look: beautiful; strange; peaceful; rather sad; wonderful; enormous; more pleasant;
    like a picture; even larger
light: the early light; the pouring rain; the pale moonlight; the summer sun; the cool shade;
    the cold air; the morning mist
dish: chicken soup; apple pie; fried fish; cheese sandwich; lemon tea; roast beef;
    ginger cake; vegetable stew; boiled rice; pure honey
taste: delicious; very good; too salty; better than usual; rather sweet; a bit sour;
    of burnt butter; as fresh as ever; quite poor; surprisingly good
condition: the weather is good; the train is late; the shop is closed; the rain stops;
    nobody is at home; there is enough time; the road is clear; the children agree;
    you lose your voice; the boys join us
plan: go to the beach; stay at home; have a picnic by the lake; visit the museum;
    take the other road; cook something together; wait at the station; tour the castle;
    watch television; choose another day
opinion: I think; we know; perhaps; it seems; they say
size: large; small; heavy; thin; wide; old; rough; short
holder: the car; the cupboard; a young child; the shelf; our house; this room
"""

ENGLISH_PLURAL = """
is: are
was: were
has: have
habit: drink tea with milk; listen to the radio; watch television; go to the cinema;
    ride a bicycle to work; choose the cheapest fish; enjoy a hot bath;
    think about the future; water the flowers; make a lot of noise; read by the window;
    sing in the choir; eat toast and jam; walk the dog; worry about money;
    play with the children; save a few coins; park in the garage;
    cook for the whole family; use the other door
subject: my parents; the children; our friends; the boys; both sisters; the young nurses;
    they; we; you
"""
ENGLISH_AGREEMENTS = [
    """
is: is
was: was
has: has
habit: drinks tea with milk; listens to the radio; watches television; goes to the cinema;
    rides a bicycle to work; chooses the cheapest fish; enjoys a hot bath;
    thinks about the future; waters the flowers; makes a lot of noise; reads by the window;
    sings in the choir; eats toast and jam; walks the dog; worries about money;
    plays with the children; saves a few coins; parks in the garage;
    cooks for the whole family; uses the other door
subject: my brother; the teacher; our cousin; her father; my youngest sister; the farmer;
    your uncle; the nurse; his wife; the old judge; that tall boy; the village doctor; she; he
""",
    ENGLISH_PLURAL,
    ENGLISH_PLURAL,
    ENGLISH_PLURAL + "is: am\nwas: was\nsubject: I",
]

# {ed} and {s} are the personal endings of the past and of the present.
PERSIAN = """
sentence: {subject} {past} {goods} خرید{ed}.; {subject} از {shop} {goods} خرید{ed}.;
    {subject} {past} به {place} رفت{ed}.; {subject} {often} {habit}.;
    {subject} {thing} را {spot} گذاشت{ed}.; {subject} {thing} را گم کرد{ed}.;
    {thing} {spot} است.; {thing} را {spot} پیدا کرد{ed}.;
    {subject} {future} به {place} خواه{s} رفت.; {subject} باید {task}.;
    {subject} می‌خواه{s} {future} {task}.; {subject} از {event} {feeling} شد{ed}.;
    {subject} {doing} که {interruption}.; {past} {interruption}.;
    آیا {past} به {place} رفتی؟; چرا {thing} را {spot} گذاشتید؟; {thing} کجاست؟;
    لطفاً {future} {command}.; لطفاً {command}.; {scene} {past} {state} بود.;
    {dish} {taste}.; اگر {condition}، {plan}.; {thing} برای {holder} {size} است.;
    {subject} {sight} ندیده بود{ed}.; {subject} صدای {noise} را از {outside} شنید{ed}.
past: دیروز; دیشب; امروز صبح; هفته‌ی پیش; عصر دیروز; پیش از ظهر; بعد از باران; روز جمعه;
    ماه گذشته; پارسال; در تعطیلات
often: هر روز صبح; بعد از ظهرها; شب‌ها; روزهای جمعه; پیش از خواب; در تابستان; همیشه;
    معمولاً; گاهی; آخر هفته‌ها
future: فردا; امشب; هفته‌ی آینده; بعد از ناهار; فردا صبح; پیش از غروب; روز شنبه; تا عصر;
    ماه آینده
shop: بازار; مغازه‌ی سر کوچه; فروشگاه بزرگ شهر; بازارچه‌ی روستا; میدان شهر
goods: نان تازه; سیب سرخ; پنیر و سبزی; کفش چرمی; ژاکت پشمی; گل‌های زرد; ماهی تازه;
    شیرینی و شکلات; کاغذ و مداد رنگی; عسل طبیعی; ظرف‌های سفالی; انگور و هندوانه;
    صندلی چوبی
place: بازار; روستا; کتابخانه; بیمارستان; کنار دریا; خانه‌ی مادربزرگ; سینما; ایستگاه قطار;
    فرودگاه; باغ وحش; مدرسه; کوهستان; پارک محله; مطب پزشک
thing: کتاب قدیمی; کیف چرمی; چتر آبی; ساعت نقره‌ای; کلید گاراژ; جعبه‌ی چوبی;
    عکس خانوادگی; دفتر مشق; ژاکت سبز; فنجان قهوه; نامه‌ی پدربزرگ; قوری چای; گلدان سفالی;
    انگشتر طلا; لباس کثیف; هدیه‌ی تولد
spot: روی میز; زیر صندلی; کنار پنجره; پشت در; داخل کمد; در حیاط خانه; لب حوض;
    نزدیک بخاری; روی طاقچه; در صندوق ماشین; میان کتاب‌ها; پای درخت
habit: چای داغ می‌نوش{s}; روزنامه می‌خوان{s}; به رادیو گوش می‌ده{s}; در پارک قدم می‌زن{s};
    به گل‌ها آب می‌ده{s}; غذای سالم می‌پز{s}; با دوچرخه به سر کار می‌رو{s};
    تلویزیون تماشا می‌کن{s}; نان و پنیر می‌خور{s}; آواز می‌خوان{s};
    برای خانواده آشپزی می‌کن{s}; فیلم می‌بین{s}; ورزش می‌کن{s};
    با گربه‌ها بازی می‌کن{s}; کمی شطرنج بازی می‌کن{s}
task: پنجره را ببند{s}; ظرف‌ها را بشوی{s}; نامه را پست کن{s}; اتاق را تمیز کن{s};
    به پزشک تلفن بزن{s}; برای سفر آماده شو{s}; درس تازه را یاد بگیر{s};
    میز را اندازه بگیر{s}; چراغ‌ها را خاموش کن{s}; ژاکت را اتو کن{s}; غذا را گرم کن{s};
    حیاط را جارو کن{s}; با رئیس اداره صحبت کن{s}
command: پنجره را ببندید; چراغ را خاموش کنید; ظرف‌ها را بشویید; صدای رادیو را کم کنید;
    غذا را گرم کنید; در را قفل کنید; نام خود را روی کاغذ بنویسید; به من تلفن بزنید;
    گلدان‌ها را آب بدهید; منتظر مهمان‌ها بمانید
event: شنیدن این خبر; جشن تولد; سفر به شمال; دیدن برف; نتیجه‌ی مسابقه;
    هدیه‌ی مادربزرگ; مهمانی دیشب; صدای موسیقی; قصه‌ی پیرمرد
feeling: خیلی خوشحال; کمی ناراحت; شگفت‌زده; بسیار هیجان‌زده; واقعاً راضی
doing: داشت{ed} کتاب می‌خواند{ed}; داشت{ed} غذا می‌پخت{ed}; داشت{ed} ظرف می‌شست{ed};
    داشت{ed} در باغ راه می‌رفت{ed}; داشت{ed} تلویزیون تماشا می‌کرد{ed};
    داشت{ed} با تلفن حرف می‌زد{ed}; داشت{ed} نقاشی می‌کشید{ed};
    داشت{ed} برای سفر آماده می‌شد{ed}
interruption: زنگ در به صدا درآمد; برق رفت; باران شروع شد; مهمان‌ها رسیدند; کسی در زد;
    بچه از خواب بیدار شد; سگ همسایه پارس کرد; صدای رعد همه جا پیچید; پستچی از راه رسید
scene: خیابان اصلی; باغ پدربزرگ; ساحل دریا; میدان شهر; جنگل; کنار رودخانه; پل قدیمی;
    کوچه‌ی ما; دشت سبز; حیاط مدرسه
state: پر از برف; بسیار آرام; خلوت; شلوغ و پر سروصدا; در مه غلیظ پنهان; زیبا و تماشایی;
    تاریک و ساکت; مثل نقاشی زیبا; پوشیده از برگ‌های زرد
dish: سوپ مرغ; آش رشته; قورمه‌سبزی; ماهی سرخ‌شده; غذای ظهر; ژله‌ی پرتقال; کباب کوبیده;
    خورش بادمجان; برنج و عدس; چای هل
taste: خیلی خوشمزه بود; کمی شور بود; بیش از حد شیرین بود; از همیشه بهتر بود;
    مثل همیشه عالی بود; کمی تلخ بود; زود سرد شد; بوی خوبی داشت
condition: هوا خوب باشد; باران نبارد; قطار دیر برسد; مغازه بسته باشد;
    وقت کافی داشته باشیم; بچه‌ها موافق باشند; راه باز باشد; برف سنگین ببارد;
    کسی در خانه نباشد; ثریا به ما تلفن بزند
plan: به ساحل می‌رویم; در خانه می‌مانیم; کنار دریاچه ناهار می‌خوریم; از موزه دیدن می‌کنیم;
    از راه دیگری می‌رویم; در ایستگاه منتظر می‌مانیم; با هم غذا می‌پزیم;
    روز دیگری را انتخاب می‌کنیم; فیلم تازه‌ای تماشا می‌کنیم
size: خیلی بزرگ; خیلی کوچک; سنگین; کهنه; گران; مناسب; قشنگ
holder: این اتاق; بچه‌ی کوچک; خانه‌ی ما; این قفسه; سفر کوتاه; مغازه‌ی عمو
sight: چنین باغ زیبایی; کشتی به این بزرگی; پرنده‌ای به این کوچکی; این همه ستاره;
    گربه‌ای به این چاقی; چنین برف سنگینی; چنین فیلم عجیبی; این همه گل سرخ
noise: رعد; باد; پرنده‌ها; خنده‌ی بچه‌ها; آواز پیرمرد; ساز و دهل; گریه‌ی نوزاد; قطار;
    آژیر; اره‌ی نجار
outside: پشت خانه; اتاق کناری; آن سوی رودخانه; بالای کوه; ته کوچه; حیاط مدرسه;
    طبقه‌ی بالا; ایوان همسایه
"""

PERSIAN_AGREEMENTS = [
    "subject: من\ned: م\ns: م",
    "subject: تو\ned: ی\ns: ی",
    "subject: مادرم; پدرم; برادرم; خواهرم; معلم ما; همسایه‌ی ما; دوستم; پزشک روستا; عمویم; "
    "مریم; رضا; ژاله; پسر همسایه; نانوای محله; مرد کشاورز; راننده‌ی تاکسی; رئیس اداره; طاهره\n"
    "ed:\ns: د",
    "subject: ما; من و برادرم; من و دوستم\ned: یم\ns: یم",
    "subject: شما\ned: ید\ns: ید",
    "subject: بچه‌ها; دوستانم; همسایه‌ها; دانش‌آموزان; پدر و مادرم; مهمان‌ها; آن‌ها; کارگران\n"
    "ed: ند\ns: ند",
]

GRAMMARS = {"en": (ENGLISH, ENGLISH_AGREEMENTS), "fa": (PERSIAN, PERSIAN_AGREEMENTS)}
