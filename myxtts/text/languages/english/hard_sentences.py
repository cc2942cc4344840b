"""English sentences that voices tend to skip, repeat or never end, by what is hard."""

HARD_SENTENCES = {
    "very short": (
        "No.",
        "Why?",
        "Oh!",
        "I am.",
    ),
    "very long": (
        "When the last of the wagons had crossed the river and the dust had settled on the road "
        "behind them, the old miller, who had watched the whole morning from his window without "
        "a word, put on his coat, called his dog, and walked down to the water to see whether "
        "anything that the travellers had thrown away could still be of use to him.",
        "She told him about the garden, about the two apple trees that never agreed on when to "
        "blossom, about the neighbour who counted every pear that fell over the wall, about the "
        "summer when the well ran dry and the whole street carried buckets, and about the winter "
        "after it, which nobody had expected to be so long, so quiet and so white.",
        "If the bridge is closed, which happens whenever the wind is strong, and if the ferry is "
        "late, which happens whenever the wind is weak, then the only way to reach the island "
        "before noon is to ask the fishermen, who will want to be paid, and who will tell you, "
        "all the way across, how much better everything was when there was no bridge at all.",
    ),
    "repeated words": (
        "Very, very, very, very slowly the door opened.",
        "No, no, no, no, no, that is not what I said.",
        "What he had had she had, and what she had had he had had too.",
        "Row after row after row after row of empty chairs.",
    ),
    "numbers": (
        "The train leaves at 7:45 from platform 12 and arrives at 11:05.",
        "In 1999 it cost $3.75, and by 2024 it was $18.20.",
        "Call 555 0187 before the 21st, or pay 6.5% more.",
        "About 1,000,000 of the 8,123,456 votes came in after 10 p.m.",
    ),
    "punctuation": (
        "Wait... what? You mean - no, surely not!",
        '"Stop," he said (rather loudly); "or don\'t: it\'s up to you."',
        "Bread, milk, eggs, salt, tea, soap, rope, nails, paint: nothing else?",
        "One; two; three - four, five. Six? Seven! Eight...",
    ),
    "mixed scripts": (
        "The sign said خوش آمدید above the door.",
        "He wrote Привет on the first page and naïve café on the last.",
        "In Persian, کتاب is a book and قلم is a pen.",
    ),
    "tongue twisters": (
        "Six slick snails silently slid past sixty sleeping sheep.",
        "Thirty thrifty thrushes threaded thick thorns through the thatch.",
        "Brisk brave brigadiers brought broad bright brushes.",
        "Where were the weary weavers when the wet wool was weighed?",
    ),
    "abbreviations": (
        "Dr. Brown and Mrs. Gray met Mr. Green at No. 5 St. James St.",
        "The FBI asked NASA, and NASA asked the BBC.",
        "See p. 12, fig. 3, vol. 2, etc.",
    ),
    "spelled out": (
        "My name is Quigley: Q, U, I, G, L, E, Y.",
        "The code is A 7 X 9 9 B, in capitals.",
        "A, B, C, D, E, F, G, and so on until Z.",
    ),
}
